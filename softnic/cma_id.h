/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the cma*.c files share. */
#ifndef SFNIC_CMA_ID_H
#define SFNIC_CMA_ID_H

#include <errno.h>
#include <string.h>
#include "softnic/cma.h"

#define UD_QKEY 0x01234567u /* RDMA_UDP_QKEY */
#define IPOIB_QKEY 0x0b1bu  /* RFC 4392, 7.2: of the broadcast group */

/* Values of enum rdma_cm_event_type. */
enum {
	EV_ADDR_RESOLVED = 0,
	EV_ADDR_ERROR,
	EV_ROUTE_RESOLVED,
	EV_ROUTE_ERROR,
	EV_CONNECT_REQUEST,
	EV_CONNECT_RESPONSE,
	EV_CONNECT_ERROR,
	EV_UNREACHABLE,
	EV_REJECTED,
	EV_ESTABLISHED,
	EV_DISCONNECTED,
	EV_MULTICAST_JOIN = 12,
	EV_MULTICAST_ERROR,
	EV_TIMEWAIT_EXIT = 15,
};

/* In the order in which an id goes through them. */
enum cma_state {
	CMA_IDLE,
	CMA_BOUND,
	CMA_LISTEN,
	CMA_ADDR_RESOLVED,
	CMA_ROUTE_RESOLVED,
	CMA_CONNECT,
	CMA_DISCONNECT,
};

struct cma_channel;

/* A multicast group that an id has joined. */
struct cma_group {
	uint32_t number;
	uint32_t reported; /* events that were fetched */
	uint64_t uid;
	struct cma_id *id;
	struct cma_group *next; /* of its id */
};

struct cma_id {
	uint32_t id;
	enum cma_state state;
	struct cma_channel *channel;
	uint64_t uid; /* 0: nobody has accepted it yet */
	uint16_t ps;
	uint8_t qp_type;
	uint8_t tos;
	uint8_t ack_timeout;
	bool reuseaddr;
	bool afonly, afonly_set;
	bool has_device;
	uint32_t backlog;  /* LISTEN: requests that may still wait */
	uint32_t reported; /* events that were fetched */
	uint32_t conn;	   /* in cma->cm, or 0 */
	uint32_t psn;
	uint32_t qkey; /* agreed upon; 0: the usual one */
	bool passive;
	bool unseen; /* a request that its listener has not fetched */
	union cma_addr src, dst;
	struct rnic_cm_path path; /* valid with has_device */
	struct cma_group *groups;
	struct cma_id *prev, *next; /* of all */
};

struct cma_event {
	struct cma_event *next;
	struct cma_id *id;	 /* whose it is, and is counted for */
	struct cma_id *request;	 /* CONNECT_REQUEST: the new id */
	struct cma_group *group; /* MULTICAST_*: counted there, too */
	struct rdma_ucm_event_resp resp;
};

struct cma_channel {
	uint32_t number;
	uint32_t waiting;
	struct cma_event *first, **last;
};

/* A MAD on its way from port to port of this host. */
struct cma_mad {
	struct cma_mad *next;
	struct rnic_cm_path path;
	uint8_t mad[RNIC_MAD_LEN];
};

struct cma {
	const struct rnic *rnic;
	const struct cma_ops *ops;
	void *host;
	uint64_t now;
	uint64_t random;
	struct rnic_cm cm;
	struct rnic_cm_conn *conns;
	struct cma_id *ids;
	uint32_t live, channels, next_id;
	struct cma_mad *first_mad, **last_mad;
	uint32_t groups, next_group;
	struct cma_id *by_id[CMA_MAX_ID];
	struct cma_group *group[CMA_MAX_ID];
	struct cma_id *by_conn[RNIC_CM_MAX_CONN];
	struct cma_channel *channel[CMA_MAX_CHANNEL];
};

uint32_t cma_random(struct cma *cma);

static inline bool cma_is_ud(const struct cma_id *id)
{
	return id->qp_type == RNIC_QPT_UD;
}

static inline uint32_t cma_qkey(const struct cma_id *id)
{
	if (id->qkey)
		return id->qkey;
	return id->ps == RDMA_PS_IPOIB ? IPOIB_QKEY : UD_QKEY;
}

/* ---- events (cma_event.c) --------------------------------------------- */

/* NULL: no memory.  It is of @id, and not in a queue yet. */
struct cma_event *cma_new_event(const struct cma_id *id, uint32_t type,
				int status);
void cma_queue_event(struct cma *cma, struct cma_id *id, struct cma_event *e);
/* Both in one, where losing it is all that can be done without memory. */
void cma_tell(struct cma *cma, struct cma_id *id, uint32_t type, int status);
void cma_set_private(const struct cma_id *id, struct cma_event *e,
		     const void *data, uint32_t len);
/*
 * Takes the events of @id (all, or those about @group) out of its channel's
 * queue: a list in their order.
 */
struct cma_event *cma_take_events(struct cma_id *id,
				  const struct cma_group *group);

/* ---- multicast (cma_mcast.c) ------------------------------------------ */

/* The answer is the group's number; what it is called comes as an event. */
int cma_join(struct cma *cma, struct cma_id *id, const union cma_addr *addr,
	     uint64_t uid, struct cma_rsp *rsp);
int cma_leave(struct cma *cma, const struct cma_channel *ch, uint32_t number,
	      struct cma_rsp *rsp);
void cma_leave_all(struct cma *cma, struct cma_id *id);

/* ---- addresses, ports, paths (cma_addr.c) ----------------------------- */

/* By its family; 0 for one that is not ours. */
size_t cma_addr_size(const union cma_addr *addr);
bool cma_addr_any(const union cma_addr *addr);
bool cma_addr_multicast(const union cma_addr *addr);
bool cma_addr_equal(const union cma_addr *a, const union cma_addr *b);
uint16_t cma_port(const union cma_addr *addr);
void cma_set_port(union cma_addr *addr, uint16_t port);
uint64_t cma_service_id(const struct cma_id *id, const union cma_addr *addr);

int cma_bind(struct cma *cma, struct cma_id *id, const union cma_addr *addr);
int cma_resolve(struct cma *cma, struct cma_id *id, const union cma_addr *src,
		const union cma_addr *dst);
/* LISTEN wants the port for itself. */
int cma_claim_port(struct cma *cma, struct cma_id *id);
/* The one who listens for a REQ or SIDR_REQ, or NULL. */
struct cma_id *cma_listener(struct cma *cma, uint64_t service_id,
			    const struct rnic_cm_ip *ip,
			    const struct rnic_cm_path *path);
/* The device that has the address is the one that answers. */
void cma_set_device(struct cma *cma, struct cma_id *id, uint32_t dev);
/* The device and port that have @gid; false: none. */
bool cma_find_gid(const struct rnic *r, const uint8_t gid[16], uint32_t *dev,
		  uint32_t *port, uint32_t *index);

/* ---- answers to questions (cma_query.c) ------------------------------- */

int cma_query_route(struct cma *cma, const struct cma_id *id,
		    struct cma_rsp *rsp);
int cma_query(struct cma *cma, const struct cma_id *id, uint32_t option,
	      struct cma_rsp *rsp);
int cma_init_qp_attr(struct cma *cma, const struct cma_id *id, uint32_t state,
		     struct cma_rsp *rsp);
void cma_ud_ah(const struct rnic_cm_path *path, struct ib_uverbs_ah_attr *ah);

#endif
