/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stddef.h>
#include <string.h>
#include <sys/un.h>
#include "softnic/raw.h"
#include "softnic/wire.h"

/*
 * The socket is reached through an fd of its directory: a path of any length
 * fits, and it cannot be swapped under us.
 */
int wire_connect(const char *dir)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	char *p = sun.sun_path;
	unsigned int n, digits[10], count = 0;
	long dirfd, sock, err;

	dirfd = raw_open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return (int)dirfd;
	sock = RAW(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0) {
		raw_close((int)dirfd);
		return (int)sock;
	}
	/* "/proc/self/fd/N/sock", without stdio */
	p = stpcpy(p, "/proc/self/fd/");
	for (n = (unsigned int)dirfd; count == 0 || n; n /= 10)
		digits[count++] = n % 10;
	while (count)
		*p++ = (char)('0' + digits[--count]);
	stpcpy(p, "/sock");
	err = RAW(SYS_connect, sock, &sun, sizeof(sun));
	if (err == -ENOENT && strlen(dir) + 6 < sizeof(sun.sun_path)) {
		/* no /proc */
		stpcpy(stpcpy(sun.sun_path, dir), "/sock");
		err = RAW(SYS_connect, sock, &sun, sizeof(sun));
	}
	raw_close((int)dirfd);
	if (err < 0) {
		raw_close((int)sock);
		return (int)err;
	}
	return (int)sock;
}

union control {
	struct cmsghdr head;
	char space[CMSG_SPACE(sizeof(int))];
};

int wire_send(int sock, const void *msg, size_t len, int fd)
{
	struct iovec iov = {(void *)msg, len};
	union control control;
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	long n;

	memset(&control, 0, sizeof(control));
	if (fd >= 0) {
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(int));
		mh.msg_control = &control;
		mh.msg_controllen = sizeof(control);
	}
	do {
		n = RAW(SYS_sendmsg, sock, &mh, MSG_NOSIGNAL);
	} while (n == -EINTR);
	if (n < 0)
		return (int)-n;
	return (size_t)n == len ? 0 : EIO;
}

int wire_recv(int sock, void *msg, size_t len, int *fd)
{
	struct iovec iov = {msg, len};
	union control control;
	struct msghdr mh = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int got = -1;
	long n;

	memset(&control, 0, sizeof(control));
	do {
		n = RAW(SYS_recvmsg, sock, &mh, MSG_CMSG_CLOEXEC);
	} while (n == -EINTR);
	if (n < 0)
		return (int)-n;
	if (mh.msg_controllen >= sizeof(struct cmsghdr) &&
	    control.head.cmsg_type == SCM_RIGHTS)
		memcpy(&got, CMSG_DATA(&control.head), sizeof(int));
	if (fd)
		*fd = got;
	else if (got >= 0)
		raw_close(got);
	if ((size_t)n == len)
		return 0;
	if (fd && got >= 0) {
		raw_close(got);
		*fd = -1;
	}
	return n ? EPROTO : EPIPE;
}
