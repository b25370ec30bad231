// SPDX-License-Identifier: Apache-2.0

package com.android.server.connectivity;

import static org.robolectric.Shadows.shadowOf;

import android.Manifest;
import android.app.Application;
import android.content.Context;
import android.os.Parcel;
import android.os.PersistableBundle;
import android.os.RemoteException;
import android.telephony.CarrierConfigManager;
import android.telephony.TelephonyManager;
import android.telephony.TelephonyRegistryManager;
import com.android.internal.telephony.ICarrierConfigChangeListener;
import com.android.internal.telephony.ICarrierConfigLoader;
import com.android.internal.telephony.ITelephonyRegistry;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.robolectric.annotation.Implements;
import org.robolectric.shadows.ShadowServiceManager;
import org.robolectric.util.ReflectionHelpers;

/** The phone process and the telephony registry, reached through the framework's own managers. */
public class FakeTelephony {
    /** Takes the place of Robolectric's shadow, and of nothing else. */
    @Implements(CarrierConfigManager.class)
    public static class RealCarrierConfigManager {}

    /** As in BaseBundle. */
    private static final int BUNDLE_MAGIC = 0x4C444E42;

    /** Which Parcel gives no value of a bundle. */
    private static final int NO_TYPE = 9999;

    private final Context mContext;
    private final Map<Integer, Integer> mCarrierIds = new ConcurrentHashMap<>();
    private final Map<Integer, PersistableBundle> mConfigs = new ConcurrentHashMap<>();
    private final Map<Integer, PersistableBundle> mOverrides = new ConcurrentHashMap<>();
    private final List<ICarrierConfigChangeListener> mListeners = new CopyOnWriteArrayList<>();

    /** Calls that a device would make to the phone process for a configuration. */
    public int reads;

    /** The keys of the last such call; none for the whole configuration. */
    public List<String> keysRead = List.of();

    /** While set, the phone process is down. */
    public boolean down;

    /** While set, the phone process and the registry take the caller for nobody. */
    public boolean refuses;

    /** While set, what the phone process answers cannot be unparceled. */
    public boolean malformed;

    /** While set, the telephony registry is not there. */
    public boolean registryDown;

    /** What happens just before somebody listens. */
    public Runnable beforeListening = () -> {};

    /** Which may not call telephony, because others wait for it. */
    public Thread neverCalls;

    private class Loader extends ICarrierConfigLoader.Default {
        @Override
        public PersistableBundle getConfigForSubIdWithFeature(
                int subId, String callingPackage, String callingFeatureId) {
            checkThread();
            reads++;
            keysRead = List.of();
            checkPermission();
            if (down) throw new IllegalStateException("Carrier config loader is not available.");
            final PersistableBundle config =
                    new PersistableBundle(mConfigs.getOrDefault(subId, new PersistableBundle()));
            config.putAll(mOverrides.getOrDefault(subId, new PersistableBundle()));
            return config;
        }

        @Override
        public PersistableBundle getConfigSubsetForSubIdWithFeature(
                int subId, String callingPackage, String callingFeatureId, String[] keys) {
            if (malformed) return makeMalformed();
            final PersistableBundle all =
                    getConfigForSubIdWithFeature(subId, callingPackage, callingFeatureId);
            keysRead = List.of(keys);
            final PersistableBundle subset = new PersistableBundle();
            for (String key : keys) {
                if (all.containsKey(key)) subset.putObject(key, all.get(key));
            }
            return subset;
        }

        @Override
        public void overrideConfig(int subId, PersistableBundle overrides, boolean persistent) {
            mContext.enforceCallingOrSelfPermission(
                    Manifest.permission.MODIFY_PHONE_STATE, "overrideConfig");
            if (overrides == null) {
                mOverrides.remove(subId);
            } else {
                mOverrides.put(subId, new PersistableBundle(overrides));
            }
            announceConfig(subId);
        }
    }

    /** As it comes from another process: nobody looks into it before it is read. */
    private static PersistableBundle makeMalformed() {
        final Parcel contents = Parcel.obtain();
        contents.writeInt(1);
        contents.writeString(DrwaCarrierConfig.KEY_ENABLED);
        contents.writeInt(NO_TYPE);
        final Parcel parcel = Parcel.obtain();
        parcel.writeInt(contents.dataSize());
        parcel.writeInt(BUNDLE_MAGIC);
        parcel.appendFrom(contents, 0, contents.dataSize());
        parcel.setDataPosition(0);
        return PersistableBundle.CREATOR.createFromParcel(parcel);
    }

    private class Registry extends ITelephonyRegistry.Default {
        @Override
        public void addCarrierConfigChangeListener(
                ICarrierConfigChangeListener listener, String packageName, String featureId) {
            checkThread();
            checkPermission();
            if (registryDown) throw new IllegalStateException("Telephony service is null");
            beforeListening.run();
            mListeners.add(listener);
        }
    }

    public FakeTelephony(Application context) {
        mContext = context;
        // The policy has no use for it, and each of its calls would wait for the phone process
        shadowOf(context).removeSystemService(Context.TELEPHONY_SERVICE);
        ShadowServiceManager.addBinderService(
                Context.CARRIER_CONFIG_SERVICE, ICarrierConfigLoader.class, new Loader());
        // The manager keeps the registry that it has found first, for all tests of a process
        ReflectionHelpers.setStaticField(
                TelephonyRegistryManager.class, "sRegistry", new Registry());
    }

    /** Sets a subscription's configuration, without telling anyone. */
    public void setConfig(int subId, PersistableBundle config) {
        mConfigs.put(subId, config);
    }

    /** As {@link #setConfig(int, PersistableBundle)}, with the two keys of λ. */
    public void setConfig(int subId, boolean enabled, int lambda) {
        setConfig(subId, enabled, lambda, DrwaUplink.OFF);
    }

    /** As {@link #setConfig(int, PersistableBundle)}, with the uplink's key, too. */
    public void setConfig(int subId, boolean enabled, int lambda, int uplinkMs) {
        setConfig(subId, enabled, lambda, uplinkMs, true);
    }

    /** As {@link #setConfig(int, PersistableBundle)}, with a word on clients if it is no. */
    public void setConfig(int subId, boolean enabled, int lambda, int uplinkMs, boolean tethering) {
        final PersistableBundle config = new PersistableBundle();
        config.putBoolean(DrwaCarrierConfig.KEY_ENABLED, enabled);
        config.putInt(DrwaCarrierConfig.KEY_LAMBDA, lambda);
        if (uplinkMs != DrwaUplink.OFF) config.putInt(DrwaCarrierConfig.KEY_UPLINK, uplinkMs);
        if (!tethering) config.putBoolean(DrwaCarrierConfig.KEY_TETHERING, false);
        setConfig(subId, config);
    }

    /** Sets whose SIM a subscription is, which is told with its configuration. */
    public void setCarrierId(int subId, int carrierId) {
        mCarrierIds.put(subId, carrierId);
    }

    /** As when the system server, which the listeners live in, starts again. */
    public void forgetListeners() {
        mListeners.clear();
    }

    /** Tells the listeners that a subscription's configuration may have changed. */
    public void announceConfig(int subId) {
        announceConfig(subId /* slotIndex */, subId);
    }

    /** Tells the listeners whose SIM is in a slot. */
    public void announceConfig(int slotIndex, int subId) {
        try {
            for (ICarrierConfigChangeListener listener : mListeners) {
                listener.onCarrierConfigChanged(
                        slotIndex,
                        subId,
                        mCarrierIds.getOrDefault(subId, TelephonyManager.UNKNOWN_CARRIER_ID),
                        TelephonyManager.UNKNOWN_CARRIER_ID);
            }
        } catch (RemoteException e) {
            throw new AssertionError(e);
        }
    }

    private void checkPermission() {
        if (refuses) throw new SecurityException("READ_PHONE_STATE");
    }

    private void checkThread() {
        if (Thread.currentThread() == neverCalls) {
            throw new IllegalStateException("Would wait for telephony");
        }
    }
}
