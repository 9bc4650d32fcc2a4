/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See daemon_cm.h. */
#include <ifaddrs.h>
#include <sys/ioctl.h>
#include <time.h>
#include "softnic/daemon_cm.h"
#include "softnic/options.h"
#include "softnic/raw.h"

static struct {
	struct cma *cma;
	const char *addrs;
	int fd[CMA_MAX_CHANNEL];
} d;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- what the ids ask the host ------------------------------------------- */

static bool same_ip(const union cma_addr *addr, const struct sockaddr *sa)
{
	const struct sockaddr_in6 *in6 = (const void *)sa;
	const struct sockaddr_in *in = (const void *)sa;

	if (!sa || sa->sa_family != addr->family)
		return false;
	if (addr->family == AF_INET)
		return in->sin_addr.s_addr == addr->in.sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&in6->sin6_addr, &addr->in6.sin6_addr);
}

static bool is_loopback(const union cma_addr *addr)
{
	if (addr->family == AF_INET)
		return ntohl(addr->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&addr->in6.sin6_addr);
}

/* Looked up each time: addresses come and go. */
static int host_device(void *host, const union cma_addr *addr)
{
	struct ifaddrs *list, *i;
	int dev;

	(void)host;
	dev = sfnic_addr_device(d.addrs, addr->family,
				addr->family == AF_INET ?
					(const void *)&addr->in.sin_addr :
					&addr->in6.sin6_addr);
	if (dev >= 0)
		return dev;
	if (is_loopback(addr))
		return 0;
	if (getifaddrs(&list))
		return -1;
	for (i = list; i && dev < 0; i = i->ifa_next)
		if (same_ip(addr, i->ifa_addr))
			dev = 0;
	freeifaddrs(list);
	return dev;
}

/*
 * One byte in the socket says that events wait.  What the program has not taken
 * yet, the kernel counts.
 */
static void host_ready(void *host, uint32_t channel)
{
	int unread = 0;

	(void)host;
	if (RAW(SYS_ioctl, d.fd[channel], TIOCOUTQ, &unread) || unread)
		return;
	RAW(SYS_sendto, d.fd[channel], "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, NULL,
	    0);
}

static bool host_may_bind_low_ports(void *host)
{
	(void)host;
	return geteuid() == 0;
}

static const struct cma_ops host_ops = {
	.device = host_device,
	.ready = host_ready,
	.may_bind_low_ports = host_may_bind_low_ports,
};

/* ---- what the daemon asks -------------------------------------------------
 */

int daemon_cm_start(const struct rnic *r, const char *addrs)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	d.addrs = addrs;
	d.cma = cma_new(r, RNIC_CM_MAX_CONN,
			(uint64_t)ts.tv_nsec << 32 ^ (uint64_t)ts.tv_sec,
			&host_ops, NULL);
	return d.cma ? 0 : ENOMEM;
}

int daemon_cm_open(int fd, uint32_t *channel)
{
	int err = cma_open(d.cma, channel);

	if (!err)
		d.fd[*channel] = fd;
	return err;
}

void daemon_cm_close(uint32_t channel)
{
	cma_close(d.cma, now_ns(), channel);
	close(d.fd[channel]);
	d.fd[channel] = -1;
}

int daemon_cm_command(const struct cma_req *req, struct cma_rsp *rsp)
{
	return cma_command(d.cma, now_ns(), req, rsp);
}

int daemon_cm_timers(void)
{
	uint64_t now = now_ns(), next = cma_tick(d.cma, now);

	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : (int)((next - now) / 1000000 + 1);
}

void daemon_cm_sync(void)
{
	cma_sync(d.cma);
}

void daemon_cm_count(struct cma_objects *n)
{
	cma_count(d.cma, n);
}
