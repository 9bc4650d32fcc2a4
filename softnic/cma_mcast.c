// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Multicast groups that rdma_cm ids have joined.  Who receives is the QPs'
 * affair (the library attaches them); joining says what the group is called.
 * Nothing has to be agreed on: names are computed alike everywhere.
 */
#include <stdlib.h>
#include "softnic/cma_id.h"

#define MULTICAST_QPN 0xffffffu
#define MLID_FIRST 0xc000u
#define MLIDS 0x3fffu /* 0xffff is permissive */
#define SCOPE_LINK 2

/* RFC 4391, 4: an IP group on InfiniBand, flags for a transient one. */
static void map_ip(const struct cma_id *id, const union cma_addr *addr,
		   uint8_t mgid[16])
{
	bool v4 = addr->family == AF_INET;

	memset(mgid, 0, 16);
	mgid[0] = 0xff;
	mgid[1] = 0x10 | SCOPE_LINK;
	mgid[2] = v4 ? 0x40 : 0x60;
	/* The signature of rdma_cm keeps its groups apart from IPoIB's. */
	mgid[3] = id->ps == RDMA_PS_UDP ? 0x01 : 0x1b;
	mgid[4] = id->path.pkey >> 8;
	mgid[5] = id->path.pkey & 0xff;
	if (v4) {
		memcpy(mgid + 12, &addr->in.sin_addr, 4);
		mgid[12] &= 0x0f;
	} else {
		memcpy(mgid + 6, &addr->in6.sin6_addr.s6_addr[6], 10);
	}
}

/* What subnet administration gives out when no group is named. */
static void assign(struct cma *cma, uint8_t mgid[16])
{
	static const uint8_t prefix[4] = {0xff, 0x10 | SCOPE_LINK, 0xa0, 0x1b};
	uint32_t number[3] = {cma_random(cma), cma_random(cma),
			      cma_random(cma)};

	memcpy(mgid, prefix, 4);
	memcpy(mgid + 4, number, sizeof(number));
}

static bool is_assigned(const union cma_addr *addr)
{
	const uint8_t *ip = addr->in6.sin6_addr.s6_addr;

	return addr->family == AF_INET6 && ip[0] == 0xff &&
	       (ip[1] & 0xf0) == 0x10 && ip[2] == 0xa0 && ip[3] == 0x1b;
}

static void mgid_infiniband(struct cma *cma, const struct cma_id *id,
			    const union cma_addr *addr, uint8_t mgid[16])
{
	if (cma_addr_any(addr))
		assign(cma, mgid);
	else if (is_assigned(addr))
		memcpy(mgid, &addr->in6.sin6_addr, 16);
	else if (addr->family == CMA_AF_IB)
		memcpy(mgid, addr->ib.sib_addr, 16);
	else
		map_ip(id, addr, mgid);
}

/* RoCEv2: the IP address itself (IBTA vol. 1, annex A17). */
static void mgid_ethernet(const union cma_addr *addr, uint8_t mgid[16])
{
	memset(mgid, 0, 16);
	switch (addr->family) {
	case AF_INET:
		mgid[10] = mgid[11] = 0xff;
		memcpy(mgid + 12, &addr->in.sin_addr, 4);
		break;
	case AF_INET6:
		memcpy(mgid, &addr->in6.sin6_addr, 16);
		break;
	case CMA_AF_IB:
		memcpy(mgid, addr->ib.sib_addr, 16);
		break;
	}
}

/* Groups may share a LID: receivers look at the MGID (10.5.1). */
static uint16_t mlid_of(const uint8_t mgid[16])
{
	uint32_t hash = 0, i;

	for (i = 0; i < 16; i++)
		hash = hash * 31 + mgid[i];
	return (uint16_t)(MLID_FIRST + hash % MLIDS);
}

static void group_ah(const struct cma_id *id, const uint8_t mgid[16],
		     struct ib_uverbs_ah_attr *ah)
{
	struct rnic_cm_path path = id->path;

	if (path.global)
		path.traffic_class = id->tos;
	else
		path.dlid = mlid_of(mgid);
	/* A group has a GID on every link. */
	path.global = 1;
	memcpy(path.dgid, mgid, 16);
	cma_ud_ah(&path, ah);
}

static struct cma_group *new_group(struct cma *cma, struct cma_id *id,
				   uint64_t uid)
{
	struct cma_group *g;
	uint32_t i;

	if (cma->groups >= CMA_MAX_ID - 1)
		return NULL;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	do {
		i = cma->next_group = cma->next_group % (CMA_MAX_ID - 1) + 1;
	} while (cma->group[i]);
	cma->group[i] = g;
	cma->groups++;
	g->number = i;
	g->uid = uid;
	g->id = id;
	g->next = id->groups;
	id->groups = g;
	return g;
}

static void free_group(struct cma *cma, struct cma_group *g)
{
	struct cma_event *e = cma_take_events(g->id, g), *next;
	struct cma_group **p = &g->id->groups;

	for (; e; e = next) {
		next = e->next;
		free(e);
	}
	while (*p != g)
		p = &(*p)->next;
	*p = g->next;
	cma->group[g->number] = NULL;
	cma->groups--;
	free(g);
}

int cma_join(struct cma *cma, struct cma_id *id, const union cma_addr *addr,
	     uint64_t uid, struct cma_rsp *rsp)
{
	struct cma_group *g = NULL;
	struct cma_event *e;
	uint8_t mgid[16];

	if ((id->state != CMA_BOUND && id->state != CMA_ADDR_RESOLVED) ||
	    !cma_is_ud(id) || (id->path.global && cma_addr_any(addr)))
		return EINVAL;
	e = cma_new_event(id, EV_MULTICAST_JOIN, 0);
	if (e)
		g = new_group(cma, id, uid);
	if (!g) {
		free(e);
		return ENOMEM;
	}
	if (id->path.global)
		mgid_ethernet(addr, mgid);
	else
		mgid_infiniband(cma, id, addr, mgid);
	e->group = g;
	e->resp.uid = uid;
	e->resp.id = g->number;
	e->resp.param.ud.qp_num = MULTICAST_QPN;
	e->resp.param.ud.qkey = cma_qkey(id);
	group_ah(id, mgid, &e->resp.param.ud.ah_attr);
	/* On Ethernet nobody is asked; the QP will not be attached to that. */
	if (!id->path.global && mgid[0] != 0xff) {
		e->resp.event = EV_MULTICAST_ERROR;
		e->resp.status = (uint32_t)-EINVAL;
	}
	cma_queue_event(cma, id, e);
	rsp->create_id.id = g->number;
	rsp->len = sizeof(rsp->create_id);
	return 0;
}

int cma_leave(struct cma *cma, const struct cma_channel *ch, uint32_t number,
	      struct cma_rsp *rsp)
{
	struct cma_group *g = number < CMA_MAX_ID ? cma->group[number] : NULL;

	if (!g)
		return ENOENT;
	if (g->id->channel != ch)
		return EINVAL;
	rsp->destroy_id.events_reported = g->reported;
	rsp->len = sizeof(rsp->destroy_id);
	free_group(cma, g);
	return 0;
}

void cma_leave_all(struct cma *cma, struct cma_id *id)
{
	while (id->groups)
		free_group(cma, id->groups);
}
