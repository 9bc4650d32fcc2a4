/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * rdma_cm from a program's write(2) to the connection manager, in one process:
 * the decoder over the ids over two devices that are only their addresses.
 * Shared by the unit test and the fuzz target.
 */
#ifndef CMA_FAKE_H
#define CMA_FAKE_H

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "softnic/ucma.h"

#define FAKE_FD 100 /* channel n is fd 100 + n */
#define FAKE_CHANNELS 16

static struct {
	struct cma *cma;
	uint64_t now;
	bool readable[CMA_MAX_CHANNEL];
	bool privileged;
	uint32_t link_layer;
} fake;

/* ---- devices ---------------------------------------------------------- */

uint32_t rnic_devices(const struct rnic *r)
{
	(void)r;
	return 2;
}

int rnic_device_info(const struct rnic *r, uint32_t dev,
		     struct rnic_device_info *info)
{
	(void)r;
	if (dev >= 2)
		return EINVAL;
	memset(info, 0, sizeof(*info));
	info->node_guid = 0x1000 + dev;
	info->ports = 1;
	return 0;
}

int rnic_port_info(const struct rnic *r, uint32_t dev, uint32_t port,
		   struct rnic_port_info *info)
{
	(void)r;
	if (dev >= 2 || port != 1)
		return EINVAL;
	memset(info, 0, sizeof(*info));
	info->link_layer = fake.link_layer;
	info->mtu = info->max_mtu = RNIC_MTU_4096;
	info->lid = dev + 1;
	info->gids = 1;
	info->gid[0][0] = 0xfe;
	info->gid[0][1] = 0x80;
	info->gid[0][15] = dev + 1;
	if (fake.link_layer == RNIC_ETHERNET) {
		info->gids = 2;
		memset(&info->gid[1][10], 0xff, 2);
		memcpy(&info->gid[1][12], "\x0a\0\0", 3);
		info->gid[1][15] = dev + 1;
	}
	return 0;
}

/* ---- the host ---------------------------------------------------------- */

/* Loopback and 10.0.0.1 are device 0's, 10.0.0.2 is device 1's. */
static int fake_device(void *host, const union cma_addr *addr)
{
	uint32_t ip;

	(void)host;
	if (addr->family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&addr->in6.sin6_addr) ? 0 : -1;
	ip = ntohl(addr->in.sin_addr.s_addr);
	if (ip >> 24 == 127 || ip == 0x0a000001)
		return 0;
	return ip == 0x0a000002 ? 1 : -1;
}

static void fake_ready(void *host, uint32_t channel)
{
	(void)host;
	fake.readable[channel] = true;
}

static bool fake_may_bind(void *host)
{
	(void)host;
	return fake.privileged;
}

static const struct cma_ops fake_cma_ops = {fake_device, fake_ready,
					    fake_may_bind};

static int fake_call(struct cma_req *req, struct cma_rsp *rsp)
{
	return cma_command(fake.cma, fake.now, req, rsp);
}

static uint32_t fake_channel(int fd)
{
	return fd > FAKE_FD && fd < FAKE_FD + FAKE_CHANNELS ? fd - FAKE_FD : 0;
}

static int fake_wait(int fd)
{
	bool *readable = &fake.readable[fake_channel(fd)];

	if (!*readable)
		return EAGAIN;
	*readable = false;
	return 0;
}

static void fake_quiet(int fd, uint32_t channel)
{
	struct cma_req req = {.channel = channel, .cmd = CMA_SYNC};
	struct cma_rsp rsp;

	if (!fake_wait(fd))
		fake_call(&req, &rsp);
}

static const struct ucma_ops fake_ops = {fake_call, fake_wait, fake_quiet,
					 fake_channel};

static void fake_begin(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.now = 1;
	fake.link_layer = RNIC_INFINIBAND;
	fake.cma = cma_new(NULL, 64, 7, &fake_cma_ops, NULL);
}

static int fake_open(void)
{
	uint32_t channel;

	return cma_open(fake.cma, &channel) ? -1 : (int)(FAKE_FD + channel);
}

#endif
