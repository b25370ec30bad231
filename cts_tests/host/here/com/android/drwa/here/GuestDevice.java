// SPDX-License-Identifier: Apache-2.0

package com.android.drwa.here;

import com.android.tradefed.device.DeviceNotAvailableException;
import com.android.tradefed.device.ITestDevice;
import com.android.tradefed.util.CommandResult;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.json.JSONException;
import org.json.JSONObject;

/** A guest of the lab with a shell like adb's, by way of guestdevice.py, which has the protocol. */
public final class GuestDevice implements ITestDevice {
    /** The policy's hosts: ConnectivityService and DrwaService. */
    public static final List<String> HOSTS = List.of("A", "B");

    private static final int ROOT_UID = 0;
    private static final int SHELL_UID = 2000;

    /** A waiting guest takes a CPU, so that there is one at a time. */
    private static GuestDevice sDevice;

    private final Process mProcess;
    private final Writer mRequests;
    private final BufferedReader mAnswers;
    private int mUid = SHELL_UID;
    private String mHost;

    private GuestDevice() throws DeviceNotAvailableException {
        final String command =
                "exec \"$(kernel/lab/venv)/bin/python\" cts_tests/host/here/guestdevice.py";
        try {
            mProcess =
                    new ProcessBuilder("sh", "-c", command)
                            .directory(new File(System.getProperty("drwa.top")))
                            .redirectError(ProcessBuilder.Redirect.INHERIT)
                            .start();
        } catch (IOException e) {
            throw new DeviceNotAvailableException("no guest", e);
        }
        mRequests = new OutputStreamWriter(mProcess.getOutputStream(), StandardCharsets.UTF_8);
        mAnswers =
                new BufferedReader(
                        new InputStreamReader(mProcess.getInputStream(), StandardCharsets.UTF_8));
        Runtime.getRuntime().addShutdownHook(new Thread(this::close));
    }

    /** The device whose system has a host of the policy, as the test before left it. */
    public static GuestDevice get(String host) throws DeviceNotAvailableException {
        if (sDevice == null) sDevice = new GuestDevice();
        if (!host.equals(sDevice.mHost)) {
            sDevice.ask("host", host);
            sDevice.mHost = host;
        }
        return sDevice;
    }

    private void close() {
        try {
            mRequests.close();
            mProcess.waitFor();
        } catch (IOException | InterruptedException e) {
            mProcess.destroy();
        }
    }

    private JSONObject readAnswer() throws DeviceNotAvailableException {
        try {
            final String line = mAnswers.readLine();
            if (line == null) throw new IOException("the guest is gone");
            final JSONObject answer = new JSONObject(line);
            if (answer.has("error")) throw new IOException(answer.getString("error"));
            return answer;
        } catch (IOException | JSONException e) {
            throw new DeviceNotAvailableException("no answer", e);
        }
    }

    private JSONObject ask(String name, Object value) throws DeviceNotAvailableException {
        try {
            final JSONObject request = new JSONObject().put(name, value).put("uid", mUid);
            mRequests.write(request + "\n");
            mRequests.flush();
        } catch (IOException | JSONException e) {
            throw new DeviceNotAvailableException(name, e);
        }
        return readAnswer();
    }

    @Override
    public boolean enableAdbRoot() {
        mUid = ROOT_UID;
        return true;
    }

    @Override
    public boolean disableAdbRoot() {
        mUid = SHELL_UID;
        return true;
    }

    @Override
    public CommandResult executeShellV2Command(String command) throws DeviceNotAvailableException {
        final JSONObject answer = ask("shell", command);
        return new CommandResult(
                answer.optInt("exit"), answer.optString("stdout"), answer.optString("stderr"));
    }

    @Override
    public void reboot() throws DeviceNotAvailableException {
        ask("reboot", true);
    }

    @Override
    public boolean waitForDeviceAvailable() {
        return true;
    }
}
