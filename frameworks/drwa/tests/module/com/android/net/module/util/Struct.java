// SPDX-License-Identifier: Apache-2.0

package com.android.net.module.util;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/**
 * Stands in for the class of ConnectivityService's module, which is in none of the jars that tests
 * run on: a structure of C's, by annotated fields. It has what the policy uses of it, and is as
 * strict about classes, fields and constructors.
 */
public class Struct {
    /** What C has for a field. */
    public enum Type {
        U8(short.class, Byte.BYTES),
        U16(int.class, Short.BYTES),
        U32(long.class, Integer.BYTES),
        U63(long.class, Long.BYTES),
        S32(int.class, Integer.BYTES),
        ByteArray(byte[].class, 0);

        final Class<?> mClass;
        final int mSize;

        Type(Class<?> type, int size) {
            mClass = type;
            mSize = size;
        }
    }

    /** Marks a field of the structure. */
    @Retention(RetentionPolicy.RUNTIME)
    @Target(ElementType.FIELD)
    public @interface Field {
        int order();

        Type type();

        int padding() default 0;

        int arraysize() default 0;
    }

    /** An {@code s32} alone. */
    public static class S32 extends Struct {
        @Field(order = 0, type = Type.S32)
        public final int val;

        public S32(final int val) {
            this.val = val;
        }
    }

    /** A {@code u32} alone. */
    public static class U32 extends Struct {
        @Field(order = 0, type = Type.U32)
        public final long val;

        public U32(final long val) {
            this.val = val;
        }
    }

    private static List<java.lang.reflect.Field> fieldsOf(Class<?> type) {
        if (type.getSuperclass() != Struct.class || !Modifier.isPublic(type.getModifiers())) {
            throw new IllegalArgumentException(type + " is no public subclass of Struct");
        }
        final List<java.lang.reflect.Field> fields = new ArrayList<>();
        for (java.lang.reflect.Field field : type.getDeclaredFields()) {
            if (!field.isAnnotationPresent(Field.class)) continue;
            if (field.getType() != field.getAnnotation(Field.class).type().mClass) {
                throw new IllegalArgumentException(field + " is not of its type");
            }
            fields.add(field);
        }
        fields.sort(Comparator.comparingInt(field -> field.getAnnotation(Field.class).order()));
        return fields;
    }

    private static int sizeOf(Field field) {
        final int size = field.type() == Type.ByteArray ? field.arraysize() : field.type().mSize;
        return size + field.padding();
    }

    public static <T extends Struct> int getSize(final Class<T> type) {
        return fieldsOf(type).stream()
                .mapToInt(field -> sizeOf(field.getAnnotation(Field.class)))
                .sum();
    }

    /** In the order of the buffer. */
    public static <T> T parse(final Class<T> type, final ByteBuffer buf) {
        final List<java.lang.reflect.Field> fields = fieldsOf(type);
        final Class<?>[] types = new Class<?>[fields.size()];
        final Object[] values = new Object[fields.size()];
        for (int i = 0; i < values.length; i++) {
            final Field field = fields.get(i).getAnnotation(Field.class);
            types[i] = fields.get(i).getType();
            values[i] = get(field, buf);
            buf.position(buf.position() + field.padding());
        }
        try {
            return type.getConstructor(types).newInstance(values);
        } catch (ReflectiveOperationException e) {
            throw new IllegalArgumentException(type.getName(), e);
        }
    }

    private static Object get(Field field, ByteBuffer buf) {
        switch (field.type()) {
            case U8:
                return (short) (buf.get() & 0xFF);
            case U16:
                return buf.getShort() & 0xFFFF;
            case U32:
                return buf.getInt() & 0xFFFFFFFFL;
            case U63:
                return buf.getLong();
            case S32:
                return buf.getInt();
            default:
                final byte[] array = new byte[field.arraysize()];
                buf.get(array);
                return array;
        }
    }

    /** In the order of the machine. */
    public byte[] writeToBytes() {
        final ByteBuffer buf = ByteBuffer.allocate(getSize(getClass()));
        buf.order(ByteOrder.nativeOrder());
        for (java.lang.reflect.Field each : fieldsOf(getClass())) {
            final Field field = each.getAnnotation(Field.class);
            final Object value;
            try {
                value = each.get(this);
            } catch (IllegalAccessException e) {
                throw new IllegalStateException(e);
            }
            switch (field.type()) {
                case U8:
                    buf.put((byte) (short) value);
                    break;
                case U16:
                    buf.putShort((short) (int) value);
                    break;
                case U32:
                    buf.putInt((int) (long) value);
                    break;
                case U63:
                    buf.putLong((long) value);
                    break;
                case S32:
                    buf.putInt((int) value);
                    break;
                default:
                    buf.put(Arrays.copyOf((byte[]) value, field.arraysize()));
                    break;
            }
            buf.position(buf.position() + field.padding());
        }
        return buf.array();
    }

    @Override
    public boolean equals(Object other) {
        return other != null
                && getClass() == other.getClass()
                && Arrays.equals(writeToBytes(), ((Struct) other).writeToBytes());
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(writeToBytes());
    }

    @Override
    public String toString() {
        return getClass().getSimpleName() + Arrays.toString(writeToBytes());
    }
}
