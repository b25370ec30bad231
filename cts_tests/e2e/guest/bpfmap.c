// SPDX-License-Identifier: Apache-2.0
// The native part of BpfMap, for the system server in a guest: bpf(2).

#include <errno.h>
#include <jni.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(int command, union bpf_attr* attr) {
    const long result = syscall(SYS_bpf, command, attr, sizeof(*attr));
    return result < 0 ? -errno : (int)result;
}

JNIEXPORT jint JNICALL Java_com_android_net_module_util_BpfMap_open(JNIEnv* env, jclass type,
                                                                    jstring path, jint flags,
                                                                    jint keySize, jint valueSize) {
    (void)type;
    const char* name = (*env)->GetStringUTFChars(env, path, NULL);
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.pathname = (uintptr_t)name;
    attr.file_flags = flags;
    const int fd = bpf(BPF_OBJ_GET, &attr);
    (*env)->ReleaseStringUTFChars(env, path, name);
    if (fd < 0) return fd;

    struct bpf_map_info info;
    memset(&info, 0, sizeof(info));
    memset(&attr, 0, sizeof(attr));
    attr.info.bpf_fd = fd;
    attr.info.info_len = sizeof(info);
    attr.info.info = (uintptr_t)&info;
    const int failed = bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
    if (!failed && info.key_size == (__u32)keySize && info.value_size == (__u32)valueSize) {
        return fd;
    }
    close(fd);
    return failed ? failed : -EBADF;
}

JNIEXPORT jint JNICALL Java_com_android_net_module_util_BpfMap_call(JNIEnv* env, jclass type,
                                                                    jint command, jint fd,
                                                                    jbyteArray key,
                                                                    jbyteArray value) {
    (void)type;
    jbyte* keyBytes = key ? (*env)->GetByteArrayElements(env, key, NULL) : NULL;
    jbyte* valueBytes = value ? (*env)->GetByteArrayElements(env, value, NULL) : NULL;
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.map_fd = fd;
    attr.key = (uintptr_t)keyBytes;
    attr.value = (uintptr_t)valueBytes;
    const int result = bpf(command, &attr);
    if (key) (*env)->ReleaseByteArrayElements(env, key, keyBytes, JNI_ABORT);
    if (value) (*env)->ReleaseByteArrayElements(env, value, valueBytes, 0);
    return result;
}
