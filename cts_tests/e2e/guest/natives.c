// SPDX-License-Identifier: Apache-2.0
// The native parts of BpfMap and of TcUtils, for the system server in a guest: bpf(2), rtnetlink.

#include <arpa/inet.h>
#include <errno.h>
#include <jni.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
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

struct request {
    struct nlmsghdr header;
    struct tcmsg tc;
    char attributes[256];
};

static struct rtattr* put(struct request* r, int type, const void* data, int size) {
    struct rtattr* attribute = (struct rtattr*)((char*)r + r->header.nlmsg_len);
    attribute->rta_type = type;
    attribute->rta_len = RTA_LENGTH(size);
    if (size) memcpy(RTA_DATA(attribute), data, size);
    r->header.nlmsg_len += RTA_ALIGN(attribute->rta_len);
    return attribute;
}

static struct request begin(int type, int flags, int index, uint32_t parent) {
    struct request r = {
            .header = {.nlmsg_len = NLMSG_LENGTH(sizeof(r.tc)), .nlmsg_type = type},
            .tc = {.tcm_family = AF_UNSPEC, .tcm_ifindex = index, .tcm_parent = parent},
    };
    r.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    return r;
}

static int ask(const struct request* r) {
    const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0) return -errno;
    struct {
        struct nlmsghdr header;
        struct nlmsgerr error;
        char rest[512];
    } answer;
    int result = 0;
    if (send(fd, r, r->header.nlmsg_len, 0) < 0 || recv(fd, &answer, sizeof(answer), 0) < 0) {
        result = -errno;
    } else {
        result = answer.error.error;
    }
    close(fd);
    return result;
}

static uint32_t direction(jboolean ingress) {
    return TC_H_MAKE(TC_H_CLSACT, ingress ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS);
}

JNIEXPORT jint JNICALL Java_com_android_net_module_util_TcUtils_addClsact(JNIEnv* env, jclass type,
                                                                          jint index) {
    (void)env;
    (void)type;
    struct request r = begin(RTM_NEWQDISC, NLM_F_EXCL | NLM_F_CREATE, index, TC_H_CLSACT);
    r.tc.tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0);
    put(&r, TCA_KIND, "clsact", sizeof("clsact"));
    return ask(&r);
}

JNIEXPORT jint JNICALL Java_com_android_net_module_util_TcUtils_addFilter(
        JNIEnv* env, jclass type, jint index, jboolean ingress, jshort priority, jshort protocol,
        jstring path) {
    (void)type;
    const char* name = (*env)->GetStringUTFChars(env, path, NULL);
    union bpf_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.pathname = (uintptr_t)name;
    const int fd = bpf(BPF_OBJ_GET, &attr);
    (*env)->ReleaseStringUTFChars(env, path, name);
    if (fd < 0) return fd;

    struct request r =
            begin(RTM_NEWTFILTER, NLM_F_EXCL | NLM_F_CREATE, index, direction(ingress));
    r.tc.tcm_info = TC_H_MAKE(priority << 16, htons(protocol));
    put(&r, TCA_KIND, "bpf", sizeof("bpf"));
    struct rtattr* options = put(&r, TCA_OPTIONS, NULL, 0);
    const uint32_t flags = TCA_BPF_FLAG_ACT_DIRECT;
    put(&r, TCA_BPF_FD, &fd, sizeof(fd));
    put(&r, TCA_BPF_NAME, "drwa", sizeof("drwa"));
    put(&r, TCA_BPF_FLAGS, &flags, sizeof(flags));
    options->rta_len = (char*)&r + r.header.nlmsg_len - (char*)options;
    const int result = ask(&r);
    close(fd);
    return result;
}

JNIEXPORT jint JNICALL Java_com_android_net_module_util_TcUtils_deleteFilter(
        JNIEnv* env, jclass type, jint index, jboolean ingress, jshort priority, jshort protocol) {
    (void)env;
    (void)type;
    struct request r = begin(RTM_DELTFILTER, 0, index, direction(ingress));
    r.tc.tcm_info = TC_H_MAKE(priority << 16, htons(protocol));
    return ask(&r);
}

JNIEXPORT jstring JNICALL Java_com_android_net_module_util_TcUtils_describe(JNIEnv* env,
                                                                            jclass type,
                                                                            jint error) {
    (void)type;
    return (*env)->NewStringUTF(env, strerror(error));
}
