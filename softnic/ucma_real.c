// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The backend of a process that has the software RNIC. */
#include "softnic/client.h"
#include "softnic/raw.h"
#include "softnic/ucma.h"

static int real_call(struct cma_req *cm, struct cma_rsp *answer)
{
	struct sfnic_req req = {.op = SFNIC_CM};
	struct sfnic_rsp rsp;
	int err;

	req.cm = *cm;
	err = sfnic_call(&req, -1, &rsp, NULL);
	*answer = rsp.cm;
	return err;
}

/*
 * By libc, as write(2) is one: a place where a thread may be cancelled. Nothing
 * is taken there, so nothing is lost.
 */
static int real_wait(int fd)
{
	int saved = errno, err;
	char token;
	ssize_t n;

	for (;;) {
		n = recv(fd, &token, 1, MSG_PEEK);
		err = n < 0 ? errno : 0;
		errno = saved;
		if (err)
			return err;
		if (!n)
			return EIO;
		n = RAW(SYS_recvfrom, fd, &token, 1, MSG_DONTWAIT, NULL, NULL);
		if (n > 0)
			return 0;
		if (n != -EAGAIN && n != -EINTR)
			return n ? (int)-n : EIO;
	}
}

/* What was there was left over, unless it has just been sent. */
static void real_quiet(int fd, uint32_t channel)
{
	struct cma_req req = {.channel = channel, .cmd = CMA_SYNC};
	struct cma_rsp rsp;
	char token;

	if (RAW(SYS_recvfrom, fd, &token, 1, MSG_DONTWAIT, NULL, NULL) > 0)
		real_call(&req, &rsp);
}

const struct ucma_ops ucma_real_ops = {
	.call = real_call,
	.wait = real_wait,
	.quiet = real_quiet,
	.channel = sfnic_cm_channel,
};
