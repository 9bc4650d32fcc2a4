/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The files by which programs find the devices: what the kernel would show
 * below /sys/class/infiniband* and /dev/infiniband, built below DIR/sys and
 * DIR/dev by the daemon; the preload library leads there.
 */
#ifndef SFNIC_TREE_H
#define SFNIC_TREE_H

#include <net/if.h>
#include <stddef.h>
#include <stdint.h>
#include "rnic/rnic.h"

/* Numbers of the character devices, the kernel's own. */
#define TREE_MAJOR 231
#define TREE_UVERBS_MINOR 192
#define TREE_UMAD_MINOR 0
#define TREE_MISC_MAJOR 10
#define TREE_CM_MINOR 122

/*
 * The interface of the host that Ethernet devices stand for, and whose
 * addresses lead to the first InfiniBand device, as those of IPoIB would.
 */
struct tree_net {
	char name[IF_NAMESIZE];
	uint8_t mac[6];
	uint32_t mtu;	   /* bytes, the interface's */
	uint32_t rnic_mtu; /* enum rnic_mtu, the largest that fits */
	uint32_t gids;	   /* link-local of the MAC, IPv4, global IPv6 */
	uint8_t gid[RNIC_MAX_GIDS][16];
};

/* The first interface that is up and has an address, else lo. */
int tree_host_net(struct tree_net *net);
/* The largest MTU whose packets fit an interface's MTU; 256 at least. */
uint32_t tree_rnic_mtu(uint32_t netdev_mtu);
/* fe80::/64 with the EUI-64 of @mac. */
void tree_link_local_gid(const uint8_t mac[6], uint8_t gid[16]);

/*
 * The host's own devices, which the tree shows beside @r's.  Numbers of nodes
 * are counted from behind theirs.
 */
struct tree_host {
	const char *root;      /* "" for that of the host; a test's directory */
	uint32_t uverbs, umad; /* first numbers that are free */
};
/* Looks which numbers are free; with NULL for @root none is taken. */
void tree_host_find(struct tree_host *host, const char *root);

/*
 * Builds the tree of @r's devices (@net: NULL if there is no interface) and
 * puts it in place in one step, also of an old one.  Returns 0, or a positive
 * errno with one line in @msg.
 */
int tree_create(const struct rnic *r, const char *dir,
		const struct tree_net *net, const struct tree_host *host,
		char *msg, size_t msg_len);
int tree_remove(const char *dir);
/* The port's state has changed: says so in the tree, too. */
int tree_put_port_state(const struct rnic *r, const char *dir, uint32_t dev,
			uint32_t port);

#endif
