/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The interface of the host that Ethernet devices stand for, and its GIDs.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>

#include "softnic/tree.h"

/*
 * The largest headers of a packet: IPv6 40, UDP 8, BTH 12, XRC 4, atomic 28,
 * ICRC 4.  The kernel subtracts the same from an interface's MTU.
 */
#define ROCE_HEADERS 96u

uint32_t tree_rnic_mtu(uint32_t netdev_mtu)
{
	uint32_t mtu = RNIC_MTU_4096;

	while (mtu > RNIC_MTU_256 && (128u << mtu) + ROCE_HEADERS > netdev_mtu)
		mtu--;
	return mtu;
}

void tree_link_local_gid(const uint8_t mac[6], uint8_t gid[16])
{
	static const uint8_t prefix[8] = {0xfe, 0x80};

	memcpy(gid, prefix, 8);
	gid[8] = mac[0] ^ 2;
	gid[9] = mac[1];
	gid[10] = mac[2];
	gid[11] = 0xff;
	gid[12] = 0xfe;
	memcpy(gid + 13, mac + 3, 3);
}

static void add_gid(struct tree_net *net, const uint8_t gid[16])
{
	if (net->gids < RNIC_MAX_GIDS)
		memcpy(net->gid[net->gids++], gid, 16);
}

static void add_ipv4(struct tree_net *net, const void *ip)
{
	uint8_t gid[16] = {[10] = 0xff, [11] = 0xff};

	memcpy(gid + 12, ip, 4);
	add_gid(net, gid);
}

static void add_ipv6(struct tree_net *net, const void *ip)
{
	if (!IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)ip))
		add_gid(net, ip);
}

/* Calls @add for each address of @family that interface @index has. */
static void add_family(struct tree_net *net, struct nl_cache *addrs, int index,
		       int family,
		       void (*add)(struct tree_net *net, const void *ip))
{
	size_t size = family == AF_INET ? 4 : 16;
	struct nl_object *obj;
	struct nl_addr *ip;

	for (obj = nl_cache_get_first(addrs); obj;
	     obj = nl_cache_get_next(obj)) {
		struct rtnl_addr *addr = (struct rtnl_addr *)obj;

		ip = rtnl_addr_get_local(addr);
		if (rtnl_addr_get_ifindex(addr) == index && ip &&
		    nl_addr_get_family(ip) == family &&
		    nl_addr_get_len(ip) == size)
			add(net, nl_addr_get_binary_addr(ip));
	}
}

static bool has_address(struct nl_cache *addrs, int index)
{
	struct nl_object *obj;

	for (obj = nl_cache_get_first(addrs); obj; obj = nl_cache_get_next(obj))
		if (rtnl_addr_get_ifindex((struct rtnl_addr *)obj) == index)
			return true;
	return false;
}

static bool usable(struct rtnl_link *link, struct nl_cache *addrs)
{
	unsigned int flags = rtnl_link_get_flags(link);

	return (flags & IFF_UP) && !(flags & IFF_LOOPBACK) &&
	       has_address(addrs, rtnl_link_get_ifindex(link));
}

static struct rtnl_link *choose(struct nl_cache *links, struct nl_cache *addrs)
{
	struct rtnl_link *link, *loopback = NULL;
	struct nl_object *obj;

	for (obj = nl_cache_get_first(links); obj;
	     obj = nl_cache_get_next(obj)) {
		link = (struct rtnl_link *)obj;
		if (usable(link, addrs))
			return link;
		if (!loopback && (rtnl_link_get_flags(link) & IFF_LOOPBACK))
			loopback = link;
	}
	return loopback;
}

static void describe(struct tree_net *net, struct rtnl_link *link,
		     struct nl_cache *addrs)
{
	struct nl_addr *mac = rtnl_link_get_addr(link);
	int index = rtnl_link_get_ifindex(link);
	uint8_t gid[16];

	snprintf(net->name, sizeof(net->name), "%s", rtnl_link_get_name(link));
	if (mac && nl_addr_get_len(mac) == sizeof(net->mac))
		memcpy(net->mac, nl_addr_get_binary_addr(mac),
		       sizeof(net->mac));
	net->mtu = rtnl_link_get_mtu(link);
	net->rnic_mtu = tree_rnic_mtu(net->mtu);
	tree_link_local_gid(net->mac, gid);
	add_gid(net, gid);
	add_family(net, addrs, index, AF_INET, add_ipv4);
	add_family(net, addrs, index, AF_INET6, add_ipv6);
}

static int look(struct tree_net *net, struct nl_sock *sock)
{
	struct nl_cache *links = NULL, *addrs = NULL;
	struct rtnl_link *link;
	int err = ENODEV;

	if (nl_connect(sock, NETLINK_ROUTE) ||
	    rtnl_link_alloc_cache(sock, AF_UNSPEC, &links) ||
	    rtnl_addr_alloc_cache(sock, &addrs))
		goto out;
	link = choose(links, addrs);
	if (link) {
		describe(net, link, addrs);
		err = 0;
	}
out:
	nl_cache_free(addrs);
	nl_cache_free(links);
	return err;
}

int tree_host_net(struct tree_net *net)
{
	struct nl_sock *sock = nl_socket_alloc();
	int err;

	memset(net, 0, sizeof(*net));
	if (!sock)
		return ENOMEM;
	err = look(net, sock);
	nl_socket_free(sock);
	return err;
}
