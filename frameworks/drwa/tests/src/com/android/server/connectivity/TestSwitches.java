// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static org.robolectric.Shadows.shadowOf;

import android.content.ContentResolver;
import android.content.Context;
import android.database.ContentObserver;
import android.net.Uri;
import android.provider.DeviceConfig;
import android.provider.Settings;
import java.util.List;
import org.robolectric.shadows.ShadowDeviceConfig;

/** The settings and flags that switch the policy, as a shell or a server puts them. */
public final class TestSwitches {
    private static final Uri SETTING = Settings.Global.getUriFor(DrwaSwitch.SETTING);
    private static final Uri RATE_LIMIT = Settings.Global.getUriFor(DrwaRateLimit.SETTING);
    private static final Uri FLAG =
            Settings.Config.CONTENT_URI
                    .buildUpon()
                    .appendPath(DeviceConfig.NAMESPACE_TETHERING)
                    .appendPath(DrwaSwitch.FLAG)
                    .build();

    private static final int NO_NUMBER = Integer.MIN_VALUE;

    private TestSwitches() {}

    /**
     * @param value null to delete it
     */
    public static void putSetting(Context context, String value) {
        final ContentResolver resolver = context.getContentResolver();
        if (value != null && value.matches("-?\\d+")) {
            // Robolectric keeps the types apart, the settings provider has strings alone
            Settings.Global.putInt(resolver, DrwaSwitch.SETTING, Integer.parseInt(value));
        } else {
            Settings.Global.putString(resolver, DrwaSwitch.SETTING, value);
        }
    }

    /**
     * @return null if there is none
     */
    public static String getSetting(Context context) {
        final ContentResolver resolver = context.getContentResolver();
        final int number = Settings.Global.getInt(resolver, DrwaSwitch.SETTING, NO_NUMBER);
        return number == NO_NUMBER
                ? Settings.Global.getString(resolver, DrwaSwitch.SETTING)
                : String.valueOf(number);
    }

    /**
     * Puts the flag, and tells observers, which Robolectric does not.
     *
     * @param value null to delete it
     */
    public static void putFlag(Context context, String value) {
        if (value == null) {
            DeviceConfig.deleteProperty(DeviceConfig.NAMESPACE_TETHERING, DrwaSwitch.FLAG);
        } else {
            DeviceConfig.setProperty(
                    DeviceConfig.NAMESPACE_TETHERING, DrwaSwitch.FLAG, value, false);
        }
        context.getContentResolver().notifyChange(FLAG, null);
    }

    /**
     * Puts the developers' limit of the download rate.
     *
     * @param bytesPerSecond -1 for none
     */
    public static void putRateLimit(Context context, long bytesPerSecond) {
        Settings.Global.putLong(
                context.getContentResolver(), DrwaRateLimit.SETTING, bytesPerSecond);
    }

    /** As when the system server, which observes them, starts again. */
    static void forgetObservers(Context context) {
        final ContentResolver resolver = context.getContentResolver();
        for (Uri uri : List.of(SETTING, RATE_LIMIT, FLAG)) {
            for (ContentObserver observer : shadowOf(resolver).getContentObservers(uri)) {
                resolver.unregisterContentObserver(observer);
            }
        }
        ShadowDeviceConfig.reset();
    }
}
