// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Addresses, ports and paths of rdma_cm ids. */
#include <arpa/inet.h>
#include <endian.h>
#include "softnic/cma_id.h"

/* The kernel's default for ports that are given out. */
#define PORT_FIRST 32768u
#define PORT_LAST 60999u
#define PORT_LOW 1024u /* below: for the privileged */

#define RATE_400_GBPS 21 /* IBV_RATE_400_GBPS */
#define LIFE_TIME 14	 /* 67 ms */

/* ---- addresses --------------------------------------------------------- */

size_t cma_addr_size(const union cma_addr *addr)
{
	switch (addr->family) {
	case AF_INET:
		return sizeof(addr->in);
	case AF_INET6:
		return sizeof(addr->in6);
	case CMA_AF_IB:
		return sizeof(addr->ib);
	}
	return 0;
}

static bool all_zero(const uint8_t *p, size_t len)
{
	while (len && !*p) {
		p++;
		len--;
	}
	return !len;
}

bool cma_addr_any(const union cma_addr *addr)
{
	switch (addr->family) {
	case AF_INET:
		return !addr->in.sin_addr.s_addr;
	case AF_INET6:
		return all_zero(addr->in6.sin6_addr.s6_addr, 16);
	case CMA_AF_IB:
		return all_zero(addr->ib.sib_addr, 16);
	}
	return true;
}

bool cma_addr_multicast(const union cma_addr *addr)
{
	switch (addr->family) {
	case AF_INET:
		return IN_MULTICAST(ntohl(addr->in.sin_addr.s_addr));
	case AF_INET6:
		return IN6_IS_ADDR_MULTICAST(&addr->in6.sin6_addr);
	case CMA_AF_IB:
		return addr->ib.sib_addr[0] == 0xff;
	}
	return false;
}

bool cma_addr_equal(const union cma_addr *a, const union cma_addr *b)
{
	if (a->family != b->family)
		return false;
	switch (a->family) {
	case AF_INET:
		return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	case AF_INET6:
		return !memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, 16);
	case CMA_AF_IB:
		return !memcmp(a->ib.sib_addr, b->ib.sib_addr, 16);
	}
	return false;
}

uint16_t cma_port(const union cma_addr *addr)
{
	switch (addr->family) {
	case AF_INET:
		return ntohs(addr->in.sin_port);
	case AF_INET6:
		return ntohs(addr->in6.sin6_port);
	case CMA_AF_IB:
		return (uint16_t)(be64toh(addr->ib.sib_sid) &
				  be64toh(addr->ib.sib_sid_mask));
	}
	return 0;
}

void cma_set_port(union cma_addr *addr, uint16_t port)
{
	uint64_t sid;

	switch (addr->family) {
	case AF_INET:
		addr->in.sin_port = htons(port);
		break;
	case AF_INET6:
		addr->in6.sin6_port = htons(port);
		break;
	case CMA_AF_IB:
		sid = be64toh(addr->ib.sib_sid) & ~0xffffull;
		addr->ib.sib_sid = htobe64(sid | port);
		addr->ib.sib_sid_mask = ~0ull;
		break;
	}
}

uint64_t cma_service_id(const struct cma_id *id, const union cma_addr *addr)
{
	if (addr->family == CMA_AF_IB)
		return be64toh(addr->ib.sib_sid);
	return RNIC_CM_SERVICE(id->ps, cma_port(addr));
}

/* Two spaces of ports that are one: AF_IB names the other by its service id. */
static uint16_t space_of(const struct cma_id *id)
{
	if (id->src.family == CMA_AF_IB)
		return (uint16_t)(be64toh(id->src.ib.sib_sid) >> 16);
	return id->ps;
}

/* ---- devices and paths -------------------------------------------------- */

bool cma_find_gid(const struct rnic *r, const uint8_t gid[16], uint32_t *dev,
		  uint32_t *port, uint32_t *index)
{
	struct rnic_port_info info;

	for (*dev = 0; *dev < rnic_devices(r); ++*dev)
		for (*port = 1; !rnic_port_info(r, *dev, *port, &info); ++*port)
			for (*index = 0; *index < info.gids; ++*index)
				if (!memcmp(info.gid[*index], gid, 16))
					return true;
	return false;
}

/* The GID that stands for @addr on a port: its own where there is one. */
static uint32_t gid_index(const struct rnic_port_info *port,
			  const union cma_addr *addr)
{
	uint8_t gid[16] = {[10] = 0xff, [11] = 0xff};
	uint32_t i;

	if (port->link_layer != RNIC_ETHERNET)
		return 0;
	if (addr->family == AF_INET)
		memcpy(gid + 12, &addr->in.sin_addr, 4);
	else if (addr->family == AF_INET6)
		memcpy(gid, &addr->in6.sin6_addr, 16);
	for (i = 0; i < port->gids; i++)
		if (!memcmp(port->gid[i], gid, 16))
			return i;
	return 0;
}

static bool find_device(struct cma *cma, const union cma_addr *addr,
			uint32_t *dev, uint32_t *port, uint32_t *index)
{
	struct rnic_port_info info;
	int found;

	if (addr->family == CMA_AF_IB)
		return cma_find_gid(cma->rnic, addr->ib.sib_addr, dev, port,
				    index);
	found = cma->ops->device(cma->host, addr);
	if (found < 0)
		return false;
	*dev = (uint32_t)found;
	*port = 1;
	if (rnic_port_info(cma->rnic, *dev, *port, &info))
		return false;
	*index = gid_index(&info, addr);
	return true;
}

static void near_end(struct cma *cma, struct rnic_cm_path *path, uint32_t dev,
		     uint32_t port, uint32_t index)
{
	struct rnic_port_info info;

	if (rnic_port_info(cma->rnic, dev, port, &info))
		return;
	path->dev = dev;
	path->port = port;
	path->sgid_index = index;
	memcpy(path->sgid, info.gid[index], 16);
	path->slid = info.lid;
	path->pkey = 0xffff;
	path->mtu = info.mtu;
	path->rate = RATE_400_GBPS;
	path->life_time = LIFE_TIME;
	path->global = info.link_layer == RNIC_ETHERNET;
	path->hop_limit = path->global ? 64 : 0;
}

static void far_end(struct cma *cma, struct rnic_cm_path *path, uint32_t dev,
		    uint32_t port, uint32_t index)
{
	struct rnic_port_info info;

	if (rnic_port_info(cma->rnic, dev, port, &info))
		return;
	memcpy(path->dgid, info.gid[index], 16);
	path->dlid = info.lid;
	if (info.mtu < path->mtu)
		path->mtu = info.mtu;
}

void cma_set_device(struct cma *cma, struct cma_id *id, uint32_t dev)
{
	(void)cma;
	id->path.dev = dev;
	id->has_device = true;
}

/* ---- ports -------------------------------------------------------------- */

/* As the kernel has it, also which of the two errors it is. */
static int port_clash(const struct cma_id *a, const struct cma_id *b,
		      bool reuse)
{
	if (reuse && b->reuseaddr && b->state != CMA_LISTEN)
		return 0;
	if (a->afonly && b->afonly && a->src.family != b->src.family)
		return 0;
	if (cma_addr_any(&a->src) || cma_addr_any(&b->src))
		return EADDRNOTAVAIL;
	return cma_addr_equal(&a->src, &b->src) ? EADDRINUSE : 0;
}

static int check_port(struct cma *cma, struct cma_id *id, uint16_t port,
		      bool reuse)
{
	struct cma_id *other;
	int err;

	for (other = cma->ids; other; other = other->next) {
		/* An accepted connection lives under its listener's port. */
		if (other == id || other->state == CMA_IDLE || other->passive ||
		    space_of(other) != space_of(id) ||
		    cma_port(&other->src) != port)
			continue;
		err = port_clash(id, other, reuse);
		if (err)
			return err;
	}
	return 0;
}

static bool port_in_use(struct cma *cma, const struct cma_id *id, uint16_t port)
{
	struct cma_id *other;

	for (other = cma->ids; other; other = other->next)
		if (other != id && other->state != CMA_IDLE &&
		    space_of(other) == space_of(id) &&
		    cma_port(&other->src) == port)
			return true;
	return false;
}

static int any_port(struct cma *cma, struct cma_id *id)
{
	uint32_t range = PORT_LAST - PORT_FIRST + 1;
	uint32_t at = cma_random(cma) % range, i;

	for (i = 0; i < range; i++, at = (at + 1) % range)
		if (!port_in_use(cma, id, PORT_FIRST + at)) {
			cma_set_port(&id->src, PORT_FIRST + at);
			return 0;
		}
	return EADDRNOTAVAIL;
}

static int take_port(struct cma *cma, struct cma_id *id)
{
	uint16_t port = cma_port(&id->src);

	if (!port)
		return any_port(cma, id);
	if (port < PORT_LOW && id->src.family != CMA_AF_IB &&
	    !cma->ops->may_bind_low_ports(cma->host))
		return EACCES;
	return check_port(cma, id, port, id->reuseaddr);
}

int cma_claim_port(struct cma *cma, struct cma_id *id)
{
	return id->reuseaddr ? check_port(cma, id, cma_port(&id->src), false) :
			       0;
}

/* ---- bind and resolve -----------------------------------------------------
 */

/* Service ids of the IP port spaces belong to those. */
static int check_service(const struct cma_id *id, const union cma_addr *addr)
{
	uint64_t sid = be64toh(addr->ib.sib_sid);
	uint16_t ps = (uint16_t)(sid >> 16);

	if (addr->family != CMA_AF_IB)
		return 0;
	if (id->ps != RDMA_PS_IB && sid >> 32 == 0 && ps != id->ps)
		return EINVAL;
	return 0;
}

int cma_bind(struct cma *cma, struct cma_id *id, const union cma_addr *addr)
{
	uint32_t dev, port, index;
	int err;

	if (!cma_addr_size(addr))
		return EAFNOSUPPORT;
	if (id->state != CMA_IDLE)
		return EINVAL;
	err = check_service(id, addr);
	if (err)
		return err;
	if (!cma_addr_any(addr)) {
		if (!find_device(cma, addr, &dev, &port, &index))
			return addr->family == CMA_AF_IB ? ENODEV :
							   EADDRNOTAVAIL;
		near_end(cma, &id->path, dev, port, index);
		id->has_device = true;
	}
	memset(&id->src, 0, sizeof(id->src));
	memcpy(&id->src, addr, cma_addr_size(addr));
	if (!id->afonly_set)
		id->afonly = addr->family == AF_INET;
	err = take_port(cma, id);
	if (err) {
		memset(&id->src, 0, sizeof(id->src));
		id->has_device = false;
		return err;
	}
	id->state = CMA_BOUND;
	return 0;
}

/* Nowhere in particular is here. */
static void or_loopback(union cma_addr *addr)
{
	if (!cma_addr_any(addr))
		return;
	if (addr->family == AF_INET)
		addr->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else if (addr->family == AF_INET6)
		addr->in6.sin6_addr = in6addr_loopback;
}

static int bind_source(struct cma *cma, struct cma_id *id,
		       const union cma_addr *src, sa_family_t family)
{
	union cma_addr any = {.family = family};

	if (src && cma_addr_size(src)) {
		if (src->family != family)
			return EINVAL;
		any = *src;
	}
	if (family == CMA_AF_IB && !any.ib.sib_sid) {
		any.ib.sib_sid = htobe64(RNIC_CM_SERVICE(id->ps, 0));
		any.ib.sib_sid_mask = htobe64(~0xffffull);
	}
	return cma_bind(cma, id, &any);
}

/* An address of the port's that the members of a group can answer to. */
static void port_address(const struct rnic_port_info *port,
			 union cma_addr *addr)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	uint32_t i;

	for (i = 0; i < port->gids; i++) {
		const uint8_t *gid = port->gid[i];
		bool v4 = !memcmp(gid, mapped, sizeof(mapped));

		if (addr->family == CMA_AF_IB) {
			memcpy(addr->ib.sib_addr, gid, 16);
			return;
		}
		if (port->link_layer != RNIC_ETHERNET ||
		    v4 != (addr->family == AF_INET))
			continue;
		if (v4)
			memcpy(&addr->in.sin_addr, gid + 12, 4);
		else
			memcpy(&addr->in6.sin6_addr, gid, 16);
		/* Of two IPv6 addresses, rather not the link-local one. */
		if (v4 || gid[0] != 0xfe)
			return;
	}
	or_loopback(addr);
}

/* Groups are reached from every port: it is the source that chooses one. */
static int resolve_group(struct cma *cma, struct cma_id *id)
{
	struct rnic_port_info info;
	uint32_t index = 0;

	if (id->has_device)
		return 0;
	if (rnic_port_info(cma->rnic, 0, 1, &info))
		return EHOSTUNREACH;
	port_address(&info, &id->src);
	if (id->src.family != CMA_AF_IB)
		index = gid_index(&info, &id->src);
	near_end(cma, &id->path, 0, 1, index);
	id->has_device = true;
	return 0;
}

static int resolve_host(struct cma *cma, struct cma_id *id)
{
	uint16_t own_port = cma_port(&id->src);
	union cma_addr *to = &id->dst;
	uint32_t dev, port, index;

	if (!find_device(cma, to, &dev, &port, &index))
		return EHOSTUNREACH;
	if (cma_addr_any(&id->src)) {
		/* Who speaks to an address of this host has the same one. */
		if (to->family == CMA_AF_IB) {
			memcpy(id->src.ib.sib_addr, to->ib.sib_addr, 16);
		} else {
			id->src = *to;
			cma_set_port(&id->src, own_port);
		}
		near_end(cma, &id->path, dev, port, index);
		id->has_device = true;
	}
	far_end(cma, &id->path, dev, port, index);
	return 0;
}

int cma_resolve(struct cma *cma, struct cma_id *id, const union cma_addr *src,
		const union cma_addr *dst)
{
	union cma_addr to;
	int err;

	memset(&to, 0, sizeof(to));
	memcpy(&to, dst, cma_addr_size(dst));
	if (id->state == CMA_IDLE) {
		err = bind_source(cma, id, src, to.family);
		if (err)
			return err;
	}
	if (id->state != CMA_BOUND || id->src.family != to.family)
		return EINVAL;
	or_loopback(&to);
	id->dst = to;
	err = cma_addr_multicast(&to) ? resolve_group(cma, id) :
					resolve_host(cma, id);
	if (!err)
		id->state = CMA_ADDR_RESOLVED;
	return err;
}

/* ---- listeners --------------------------------------------------------------
 */

static bool listens_for(const struct cma_id *id, uint64_t service_id,
			const struct rnic_cm_ip *ip,
			const struct rnic_cm_path *path)
{
	const union cma_addr *src = &id->src;
	uint64_t mask;

	if (src->family == CMA_AF_IB) {
		mask = be64toh(src->ib.sib_sid_mask);
		return !((service_id ^ be64toh(src->ib.sib_sid)) & mask) &&
		       (cma_addr_any(src) ||
			!memcmp(src->ib.sib_addr, path->sgid, 16));
	}
	if (!ip || service_id != cma_service_id(id, src))
		return false;
	if (cma_addr_any(src))
		return src->family == (ip->version == 4 ? AF_INET : AF_INET6) ||
		       !id->afonly;
	if (src->family == AF_INET)
		return ip->version == 4 &&
		       !memcmp(&src->in.sin_addr, ip->dst, 4);
	return ip->version == 6 && !memcmp(&src->in6.sin6_addr, ip->dst, 16);
}

struct cma_id *cma_listener(struct cma *cma, uint64_t service_id,
			    const struct rnic_cm_ip *ip,
			    const struct rnic_cm_path *path)
{
	struct cma_id *id, *any = NULL;

	for (id = cma->ids; id; id = id->next) {
		if (id->state != CMA_LISTEN ||
		    !listens_for(id, service_id, ip, path))
			continue;
		if (!cma_addr_any(&id->src))
			return id;
		any = id;
	}
	return any;
}
