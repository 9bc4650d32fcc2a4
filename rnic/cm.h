/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Communication management (IBTA vol. 1, chapter 12) without I/O: calls of the
 * user, received MADs and the time go in; MADs and events come out through a
 * table of functions.  One instance serves all ports of a host; one caller at a
 * time.
 *
 * A conversation is named by the number that travels as its communication id.
 * Who listens is not known here: ops->request is asked.
 *
 * Return values: 0 or a positive errno (EINVAL: not in this state).
 */
#ifndef RNIC_CM_H
#define RNIC_CM_H

#include "rnic/cm_msg.h"
#include "rnic/rnic.h"

enum rnic_cm_state {
	RNIC_CM_FREE = 0,
	RNIC_CM_IDLE,
	RNIC_CM_REQ_SENT,
	RNIC_CM_MRA_REQ_RCVD,
	RNIC_CM_REQ_RCVD,
	RNIC_CM_MRA_REQ_SENT,
	RNIC_CM_REP_SENT,
	RNIC_CM_MRA_REP_RCVD,
	RNIC_CM_REP_RCVD,
	RNIC_CM_MRA_REP_SENT,
	RNIC_CM_ESTABLISHED,
	RNIC_CM_DREQ_SENT,
	RNIC_CM_TIMEWAIT,
	RNIC_CM_SIDR_REQ_SENT,
	RNIC_CM_SIDR_REQ_RCVD,
};

/* From one of this host's ports to another port. */
struct rnic_cm_path {
	uint32_t dev, port, sgid_index;
	uint8_t sgid[16], dgid[16];
	uint16_t slid, dlid;
	uint16_t pkey;
	uint8_t global; /* the address is the GID, as always on Ethernet */
	uint8_t mtu;	/* enum rnic_mtu */
	uint8_t rate;	/* enum ibv_rate */
	uint8_t sl;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t life_time; /* of a packet: 4.096 us << this */
	uint32_t flow_label;
};

enum rnic_cm_event {
	RNIC_CM_EV_REP,
	RNIC_CM_EV_ESTABLISHED, /* passive side: RTU, or rnic_cm_notify() */
	RNIC_CM_EV_REJECTED,
	RNIC_CM_EV_UNREACHABLE, /* no answer to REQ, REP or SIDR_REQ */
	RNIC_CM_EV_DISCONNECTED,
	RNIC_CM_EV_TIMEWAIT_EXIT,
	RNIC_CM_EV_SIDR_REP,
};

struct rnic_cm_ops {
	void (*send)(void *host, const struct rnic_cm_path *path,
		     const uint8_t mad[RNIC_MAD_LEN]);
	/*
	 * A REQ or SIDR_REQ begins conversation @conn.  0: somebody will
	 * answer; RNIC_CM_DROP: not now, the peer shall ask again; else the
	 * reason of a REJ, or the status of a SIDR_REP.
	 */
	int (*request)(void *host, uint32_t conn,
		       const struct rnic_cm_path *path,
		       const struct rnic_cm_msg *msg);
	/* @msg: what brought it, or NULL.  May call back. */
	void (*event)(void *host, uint32_t conn, enum rnic_cm_event event,
		      const struct rnic_cm_msg *msg);
};

#define RNIC_CM_DROP (-1)

/* What one side says of its QP. */
struct rnic_cm_param {
	uint32_t qpn;
	uint32_t qkey;
	uint32_t psn; /* that we expect first */
	uint64_t ca_guid;
	uint32_t transport, extended_transport; /* REQ only */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t flow_control;
	uint8_t retry_count; /* REQ only */
	uint8_t rnr_retry_count;
	uint8_t srq;
	uint8_t ack_timeout; /* 0: as the path's life time says */
	uint32_t vendor_id, vendor_options; /* ECE */
	uint32_t private_len;
	uint8_t private_data[RNIC_CM_PRIVATE_MAX];
};

struct rnic_cm_conn {
	uint32_t id;   /* communication id; index in the low bits */
	uint8_t state; /* enum rnic_cm_state */
	bool orphan;   /* nobody hears events; freed when it comes to rest */
	bool passive;
	uint8_t retries;     /* how often the message is repeated yet */
	uint8_t answer_time; /* of the peer: 4.096 us << this */
	uint32_t peer_id;
	uint64_t peer_guid, local_guid; /* of the channel adapters */
	uint64_t tid;
	uint64_t deadline; /* UINT64_MAX: no timer */
	uint32_t next;	   /* in the chain of peer_id, or of free entries */
	struct rnic_cm_path path;
	uint32_t peer_qpn, local_qpn;
	uint32_t sq_psn, rq_psn;
	uint8_t transport, extended_transport;
	uint8_t responder_resources, initiator_depth;
	uint8_t retry_count, rnr_retry_count;
	uint8_t ack_timeout;
	uint64_t service_id;
	uint8_t mad[RNIC_MAD_LEN]; /* the last one sent, to be repeated */
};

#define RNIC_CM_INDEX_BITS 16
#define RNIC_CM_MAX_CONN (1u << RNIC_CM_INDEX_BITS)
#define RNIC_CM_CHAINS 4096

struct rnic_cm {
	struct rnic_cm_conn *conn; /* zeroed memory of the host's */
	uint32_t size;
	uint32_t used;		  /* entries below were in use at some time */
	uint32_t free, last_free; /* oldest first: numbers rest for long */
	uint32_t live;
	uint64_t next_tick; /* never later than the first deadline */
	uint64_t tid;
	const struct rnic_cm_ops *ops;
	void *host;
	uint32_t chain[RNIC_CM_CHAINS];
};

/* @size at most RNIC_CM_MAX_CONN; @seed varies transaction ids. */
void rnic_cm_init(struct rnic_cm *cm, struct rnic_cm_conn *conn, uint32_t size,
		  uint64_t seed, const struct rnic_cm_ops *ops, void *host);

int rnic_cm_create(struct rnic_cm *cm, uint32_t *conn);
/* In any state: tells the peer what it has to know. */
void rnic_cm_destroy(struct rnic_cm *cm, uint64_t now, uint32_t conn);

int rnic_cm_connect(struct rnic_cm *cm, uint64_t now, uint32_t conn,
		    const struct rnic_cm_path *path, uint64_t service_id,
		    const struct rnic_cm_param *param);
/* Answers a REQ with a REP. */
int rnic_cm_accept(struct rnic_cm *cm, uint64_t now, uint32_t conn,
		   const struct rnic_cm_param *param);
/* Answers a REP with an RTU. */
int rnic_cm_ready(struct rnic_cm *cm, uint64_t now, uint32_t conn);
/* Answers REQ, REP or SIDR_REQ. */
int rnic_cm_reject(struct rnic_cm *cm, uint64_t now, uint32_t conn,
		   uint32_t reason, const void *private_data, uint32_t len);
/* DREQ, unless the peer's has been answered. */
int rnic_cm_disconnect(struct rnic_cm *cm, uint64_t now, uint32_t conn);
/* Data has arrived before the RTU. */
int rnic_cm_notify(struct rnic_cm *cm, uint64_t now, uint32_t conn);
int rnic_cm_sidr_request(struct rnic_cm *cm, uint64_t now, uint32_t conn,
			 const struct rnic_cm_path *path, uint64_t service_id,
			 const void *private_data, uint32_t len);
int rnic_cm_sidr_reply(struct rnic_cm *cm, uint64_t now, uint32_t conn,
		       uint32_t status, uint32_t qpn, uint32_t qkey,
		       const void *private_data, uint32_t len);

/* Attributes for a transition to @attr->state of the QP that is connected. */
int rnic_cm_qp_attr(const struct rnic_cm *cm, uint32_t conn,
		    struct rnic_qp_attr *attr, uint32_t *mask);
const struct rnic_cm_conn *rnic_cm_find(const struct rnic_cm *cm,
					uint32_t conn);

/* A MAD for this host; @path leads back to its sender. */
void rnic_cm_receive(struct rnic_cm *cm, uint64_t now,
		     const struct rnic_cm_path *path, const uint8_t *mad,
		     size_t len);
/* Runs what is due; when to be called next, or UINT64_MAX. */
uint64_t rnic_cm_tick(struct rnic_cm *cm, uint64_t now);

#endif
