/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state machines of figures 140 and 141 (active and passive side), 12.9.7,
 * and of service id resolution, 12.11.
 */
#include <errno.h>
#include <string.h>
#include "rnic/cm.h"

/* What the Linux connection manager uses, too. */
#define ANSWER_TIME 20 /* 4.3 s */
#define RETRIES 15
#define MRA_TIME 24 /* 69 s, for an answer that a program has to give */

#define RESTING 1024 /* numbers that are not used again yet */

#define NONE RNIC_CM_MAX_CONN
#define INDEX(id) ((id) & (RNIC_CM_MAX_CONN - 1))

static uint64_t cm_time(uint32_t exponent)
{
	return 4096ull << (exponent & 31);
}

/* ---- conversations and their numbers --------------------------------- */

static struct rnic_cm_conn *get(const struct rnic_cm *cm, uint32_t id)
{
	struct rnic_cm_conn *c = &cm->conn[INDEX(id)];

	return INDEX(id) < cm->size && c->state && c->id == id ? c : NULL;
}

const struct rnic_cm_conn *rnic_cm_find(const struct rnic_cm *cm, uint32_t conn)
{
	return get(cm, conn);
}

static uint32_t *chain_of(struct rnic_cm *cm, uint32_t peer_id)
{
	return &cm->chain[(peer_id ^ peer_id >> 16) % RNIC_CM_CHAINS];
}

static void set_peer(struct rnic_cm *cm, struct rnic_cm_conn *c,
		     uint32_t peer_id, uint64_t peer_guid)
{
	uint32_t *chain = chain_of(cm, peer_id);

	c->peer_id = peer_id;
	c->peer_guid = peer_guid;
	c->next = *chain;
	*chain = INDEX(c->id);
}

static void forget_peer(struct rnic_cm *cm, struct rnic_cm_conn *c)
{
	uint32_t *p;

	for (p = chain_of(cm, c->peer_id); *p != NONE; p = &cm->conn[*p].next)
		if (*p == INDEX(c->id)) {
			*p = c->next;
			break;
		}
	c->peer_id = 0;
	c->peer_guid = 0;
}

/* The one that the peer knows under that number of its own. */
static struct rnic_cm_conn *find_peer(struct rnic_cm *cm, uint32_t peer_id,
				      uint64_t peer_guid, bool sidr)
{
	uint32_t i;

	for (i = *chain_of(cm, peer_id); i != NONE; i = cm->conn[i].next) {
		struct rnic_cm_conn *c = &cm->conn[i];

		if (c->passive && c->peer_id == peer_id &&
		    c->peer_guid == peer_guid &&
		    sidr == (c->state == RNIC_CM_SIDR_REQ_RCVD))
			return c;
	}
	return NULL;
}

static void free_conn(struct rnic_cm *cm, struct rnic_cm_conn *c)
{
	uint32_t index = INDEX(c->id);

	forget_peer(cm, c);
	c->state = RNIC_CM_FREE;
	c->next = NONE;
	cm->live--;
	if (cm->free == NONE)
		cm->free = index;
	else
		cm->conn[cm->last_free].next = index;
	cm->last_free = index;
}

/* Numbers come back as late as possible, and under another generation. */
static struct rnic_cm_conn *new_conn(struct rnic_cm *cm)
{
	struct rnic_cm_conn *c;
	uint32_t index, id;

	if (cm->used < cm->size && cm->used - cm->live < RESTING) {
		index = cm->used++;
	} else {
		index = cm->free;
		if (index == NONE)
			return NULL;
		cm->free = cm->conn[index].next;
	}
	c = &cm->conn[index];
	id = c->id + RNIC_CM_MAX_CONN;
	if (id < RNIC_CM_MAX_CONN) /* generation 0 is nobody's */
		id = RNIC_CM_MAX_CONN;
	memset(c, 0, sizeof(*c));
	c->id = (id & ~(RNIC_CM_MAX_CONN - 1)) | index;
	c->state = RNIC_CM_IDLE;
	c->deadline = UINT64_MAX;
	cm->live++;
	set_peer(cm, c, 0, 0);
	return c;
}

void rnic_cm_init(struct rnic_cm *cm, struct rnic_cm_conn *conn, uint32_t size,
		  uint64_t seed, const struct rnic_cm_ops *ops, void *host)
{
	uint32_t i;

	memset(cm, 0, sizeof(*cm));
	cm->conn = conn;
	cm->size = size < RNIC_CM_MAX_CONN ? size : RNIC_CM_MAX_CONN;
	cm->free = cm->last_free = NONE;
	cm->next_tick = UINT64_MAX;
	cm->tid = seed;
	cm->ops = ops;
	cm->host = host;
	for (i = 0; i < RNIC_CM_CHAINS; i++)
		cm->chain[i] = NONE;
}

int rnic_cm_create(struct rnic_cm *cm, uint32_t *conn)
{
	struct rnic_cm_conn *c = new_conn(cm);

	if (!c)
		return ENOMEM;
	*conn = c->id;
	return 0;
}

/* ---- timers ---------------------------------------------------------- */

static void set_timer(struct rnic_cm *cm, struct rnic_cm_conn *c,
		      uint64_t deadline)
{
	c->deadline = deadline;
	if (deadline < cm->next_tick)
		cm->next_tick = deadline;
}

static void stop_timer(struct rnic_cm_conn *c)
{
	c->deadline = UINT64_MAX;
}

/* ---- sending --------------------------------------------------------- */

static void begin(struct rnic_cm_msg *msg, const struct rnic_cm_conn *c,
		  uint32_t attr)
{
	memset(msg, 0, sizeof(*msg));
	msg->attr = attr;
	msg->tid = c->tid;
	msg->local_id = c->id;
	msg->remote_id = c->peer_id;
}

static void set_private(struct rnic_cm_msg *msg, const void *data, uint32_t len)
{
	if (len)
		memcpy(msg->private_data, data, len);
}

static void send_once(struct rnic_cm *cm, const struct rnic_cm_conn *c,
		      const struct rnic_cm_msg *msg)
{
	uint8_t mad[RNIC_MAD_LEN];

	rnic_cm_pack(msg, mad);
	cm->ops->send(cm->host, &c->path, mad);
}

/* Kept: a duplicate of what it answers gets it again. */
static void send_kept(struct rnic_cm *cm, struct rnic_cm_conn *c,
		      const struct rnic_cm_msg *msg)
{
	uint8_t mad[RNIC_MAD_LEN];

	rnic_cm_pack(msg, c->mad);
	/* A copy: what it causes may replace it. */
	memcpy(mad, c->mad, sizeof(mad));
	cm->ops->send(cm->host, &c->path, mad);
}

static void send_again(struct rnic_cm *cm, const struct rnic_cm_conn *c)
{
	uint8_t mad[RNIC_MAD_LEN];

	memcpy(mad, c->mad, sizeof(mad));
	cm->ops->send(cm->host, &c->path, mad);
}

/* Moves to @state and repeats the message until an answer stops the timer. */
static void send_until_answered(struct rnic_cm *cm, uint64_t now,
				struct rnic_cm_conn *c, uint32_t state,
				const struct rnic_cm_msg *msg)
{
	c->state = state;
	c->retries = RETRIES;
	set_timer(cm, c, now + cm_time(c->answer_time));
	send_kept(cm, c, msg);
}

static void send_mra(struct rnic_cm *cm, struct rnic_cm_conn *c, uint32_t about)
{
	struct rnic_cm_msg msg;

	begin(&msg, c, RNIC_CM_MRA);
	msg.mra.about = about;
	msg.mra.service_timeout = MRA_TIME;
	send_once(cm, c, &msg);
}

static void put_guid(uint8_t *to, uint64_t guid)
{
	int i;

	for (i = 0; i < 8; i++)
		to[i] = (uint8_t)(guid >> (56 - 8 * i));
}

static void send_rej(struct rnic_cm *cm, const struct rnic_cm_conn *c,
		     uint32_t about, uint32_t reason, const void *private_data,
		     uint32_t len)
{
	struct rnic_cm_msg msg;

	begin(&msg, c, RNIC_CM_REJ);
	msg.rej.about = about;
	msg.rej.reason = reason;
	/* It may not know our number: our GUID tells it whose number it is. */
	if (reason == RNIC_CM_TIMEOUT) {
		put_guid(msg.rej.info, c->local_guid);
		msg.rej.info_len = 8;
	}
	set_private(&msg, private_data, len);
	send_once(cm, c, &msg);
}

static void send_dreq(struct rnic_cm *cm, uint64_t now, struct rnic_cm_conn *c)
{
	struct rnic_cm_msg msg;

	begin(&msg, c, RNIC_CM_DREQ);
	msg.tid = ++cm->tid;
	msg.dreq.remote_qpn = c->peer_qpn;
	send_until_answered(cm, now, c, RNIC_CM_DREQ_SENT, &msg);
}

/* Packets of the connection may still be on their way: 12.9.8.4. */
static void enter_timewait(struct rnic_cm *cm, uint64_t now,
			   struct rnic_cm_conn *c)
{
	c->state = RNIC_CM_TIMEWAIT;
	set_timer(cm, c,
		  now + 2 * cm_time(c->path.life_time) +
			  cm_time(c->ack_timeout));
}

static void send_drep(struct rnic_cm *cm, uint64_t now, struct rnic_cm_conn *c)
{
	struct rnic_cm_msg msg;

	begin(&msg, c, RNIC_CM_DREP);
	enter_timewait(cm, now, c);
	send_kept(cm, c, &msg);
}

static void tell(struct rnic_cm *cm, const struct rnic_cm_conn *c,
		 enum rnic_cm_event event, const struct rnic_cm_msg *msg)
{
	if (!c->orphan)
		cm->ops->event(cm->host, c->id, event, msg);
}

/* Nothing more will happen.  @event is told last: it may destroy. */
static void come_to_rest(struct rnic_cm *cm, struct rnic_cm_conn *c,
			 enum rnic_cm_event event,
			 const struct rnic_cm_msg *msg)
{
	stop_timer(c);
	c->state = RNIC_CM_IDLE;
	if (c->orphan)
		free_conn(cm, c);
	else
		tell(cm, c, event, msg);
}

/* ---- calls of the user ------------------------------------------------ */

static uint8_t ack_timeout(const struct rnic_cm_path *path, uint8_t wanted)
{
	if (wanted)
		return wanted & 31;
	return path->life_time < 31 ? path->life_time + 1 : 31;
}

static void describe_path(struct rnic_cm_req_path *to,
			  const struct rnic_cm_path *path, uint32_t timeout)
{
	memcpy(to->local_gid, path->sgid, 16);
	memcpy(to->remote_gid, path->dgid, 16);
	to->local_lid = path->slid;
	to->remote_lid = path->dlid;
	to->flow_label = path->flow_label;
	to->rate = path->rate;
	to->traffic_class = path->traffic_class;
	to->hop_limit = path->hop_limit;
	to->sl = path->sl;
	to->subnet_local = !path->global;
	to->ack_timeout = timeout;
}

int rnic_cm_connect(struct rnic_cm *cm, uint64_t now, uint32_t conn,
		    const struct rnic_cm_path *path, uint64_t service_id,
		    const struct rnic_cm_param *p)
{
	struct rnic_cm_conn *c = get(cm, conn);
	struct rnic_cm_msg msg;

	if (!c || c->state != RNIC_CM_IDLE ||
	    p->private_len > RNIC_CM_REQ_PRIVATE)
		return EINVAL;
	c->path = *path;
	c->tid = ++cm->tid;
	c->answer_time = ANSWER_TIME;
	c->local_guid = p->ca_guid;
	c->local_qpn = p->qpn;
	c->rq_psn = p->psn;
	c->transport = p->transport;
	c->extended_transport = p->extended_transport;
	c->responder_resources = p->responder_resources;
	c->initiator_depth = p->initiator_depth;
	c->retry_count = p->retry_count;
	c->rnr_retry_count = p->rnr_retry_count;
	c->ack_timeout = ack_timeout(path, p->ack_timeout);
	c->service_id = service_id;
	begin(&msg, c, RNIC_CM_REQ);
	msg.modifier = p->vendor_options;
	msg.req.vendor_id = p->vendor_id;
	msg.req.service_id = service_id;
	msg.req.ca_guid = p->ca_guid;
	msg.req.qkey = p->qkey;
	msg.req.qpn = p->qpn;
	msg.req.responder_resources = p->responder_resources;
	msg.req.initiator_depth = p->initiator_depth;
	msg.req.remote_timeout = msg.req.local_timeout = ANSWER_TIME;
	msg.req.transport = p->transport;
	msg.req.extended_transport = p->extended_transport;
	msg.req.flow_control = p->flow_control;
	msg.req.psn = p->psn;
	msg.req.retry_count = p->retry_count;
	msg.req.pkey = path->pkey;
	msg.req.mtu = path->mtu;
	msg.req.rnr_retry_count = p->rnr_retry_count;
	msg.req.max_cm_retries = RETRIES;
	msg.req.srq = p->srq;
	describe_path(&msg.req.path, path, c->ack_timeout);
	set_private(&msg, p->private_data, p->private_len);
	send_until_answered(cm, now, c, RNIC_CM_REQ_SENT, &msg);
	return 0;
}

int rnic_cm_accept(struct rnic_cm *cm, uint64_t now, uint32_t conn,
		   const struct rnic_cm_param *p)
{
	struct rnic_cm_conn *c = get(cm, conn);
	struct rnic_cm_msg msg;

	if (!c ||
	    (c->state != RNIC_CM_REQ_RCVD &&
	     c->state != RNIC_CM_MRA_REQ_SENT) ||
	    p->private_len > RNIC_CM_REP_PRIVATE)
		return EINVAL;
	c->local_guid = p->ca_guid;
	c->local_qpn = p->qpn;
	c->rq_psn = p->psn;
	c->responder_resources = p->responder_resources;
	c->initiator_depth = p->initiator_depth;
	begin(&msg, c, RNIC_CM_REP);
	msg.modifier = p->vendor_options;
	msg.rep.vendor_h = p->vendor_id >> 16 & 0xff;
	msg.rep.vendor_m = p->vendor_id >> 8 & 0xff;
	msg.rep.vendor_l = p->vendor_id & 0xff;
	msg.rep.qkey = p->qkey;
	msg.rep.qpn = p->qpn;
	msg.rep.psn = p->psn;
	msg.rep.responder_resources = p->responder_resources;
	msg.rep.initiator_depth = p->initiator_depth;
	msg.rep.flow_control = p->flow_control;
	msg.rep.rnr_retry_count = p->rnr_retry_count;
	msg.rep.srq = p->srq;
	msg.rep.ca_guid = p->ca_guid;
	set_private(&msg, p->private_data, p->private_len);
	send_until_answered(cm, now, c, RNIC_CM_REP_SENT, &msg);
	return 0;
}

int rnic_cm_ready(struct rnic_cm *cm, uint64_t now, uint32_t conn)
{
	struct rnic_cm_conn *c = get(cm, conn);
	struct rnic_cm_msg msg;

	(void)now;
	if (!c ||
	    (c->state != RNIC_CM_REP_RCVD && c->state != RNIC_CM_MRA_REP_SENT))
		return EINVAL;
	c->state = RNIC_CM_ESTABLISHED;
	begin(&msg, c, RNIC_CM_RTU);
	send_kept(cm, c, &msg);
	return 0;
}

int rnic_cm_reject(struct rnic_cm *cm, uint64_t now, uint32_t conn,
		   uint32_t reason, const void *private_data, uint32_t len)
{
	struct rnic_cm_conn *c = get(cm, conn);
	uint32_t about;

	if (!c || len > RNIC_CM_REJ_PRIVATE)
		return EINVAL;
	switch (c->state) {
	case RNIC_CM_SIDR_REQ_RCVD:
		return rnic_cm_sidr_reply(cm, now, conn, RNIC_CM_SIDR_REJECT, 0,
					  0, private_data, len);
	case RNIC_CM_REQ_RCVD:
	case RNIC_CM_MRA_REQ_SENT:
		about = RNIC_CM_ABOUT_REQ;
		break;
	case RNIC_CM_REP_RCVD:
	case RNIC_CM_MRA_REP_SENT:
		about = RNIC_CM_ABOUT_REP;
		break;
	case RNIC_CM_REP_SENT:
	case RNIC_CM_MRA_REP_RCVD:
		about = RNIC_CM_ABOUT_OTHER;
		break;
	default:
		return EINVAL;
	}
	stop_timer(c);
	c->state = RNIC_CM_IDLE;
	send_rej(cm, c, about, reason, private_data, len);
	return 0;
}

int rnic_cm_disconnect(struct rnic_cm *cm, uint64_t now, uint32_t conn)
{
	struct rnic_cm_conn *c = get(cm, conn);

	if (!c)
		return EINVAL;
	switch (c->state) {
	case RNIC_CM_REP_SENT:
	case RNIC_CM_MRA_REP_RCVD:
	case RNIC_CM_ESTABLISHED:
		send_dreq(cm, now, c);
		return 0;
	case RNIC_CM_DREQ_SENT:
	case RNIC_CM_TIMEWAIT:
		return 0; /* it is over, or will be */
	default:
		return EINVAL;
	}
}

int rnic_cm_notify(struct rnic_cm *cm, uint64_t now, uint32_t conn)
{
	struct rnic_cm_conn *c = get(cm, conn);

	(void)now;
	if (!c)
		return EINVAL;
	if (c->state == RNIC_CM_ESTABLISHED)
		return EISCONN;
	if (c->state != RNIC_CM_REP_SENT && c->state != RNIC_CM_MRA_REP_RCVD)
		return EINVAL;
	stop_timer(c);
	c->state = RNIC_CM_ESTABLISHED;
	tell(cm, c, RNIC_CM_EV_ESTABLISHED, NULL);
	return 0;
}

int rnic_cm_sidr_request(struct rnic_cm *cm, uint64_t now, uint32_t conn,
			 const struct rnic_cm_path *path, uint64_t service_id,
			 const void *private_data, uint32_t len)
{
	struct rnic_cm_conn *c = get(cm, conn);
	struct rnic_cm_msg msg;

	if (!c || c->state != RNIC_CM_IDLE || len > RNIC_CM_SIDR_REQ_PRIVATE)
		return EINVAL;
	c->path = *path;
	c->tid = ++cm->tid;
	c->answer_time = ANSWER_TIME;
	c->service_id = service_id;
	begin(&msg, c, RNIC_CM_SIDR_REQ);
	msg.sidr_req.pkey = path->pkey;
	msg.sidr_req.service_id = service_id;
	set_private(&msg, private_data, len);
	send_until_answered(cm, now, c, RNIC_CM_SIDR_REQ_SENT, &msg);
	return 0;
}

int rnic_cm_sidr_reply(struct rnic_cm *cm, uint64_t now, uint32_t conn,
		       uint32_t status, uint32_t qpn, uint32_t qkey,
		       const void *private_data, uint32_t len)
{
	struct rnic_cm_conn *c = get(cm, conn);
	struct rnic_cm_msg msg;

	(void)now;
	if (!c || c->state != RNIC_CM_SIDR_REQ_RCVD ||
	    len > RNIC_CM_SIDR_REP_PRIVATE)
		return EINVAL;
	c->state = RNIC_CM_IDLE;
	begin(&msg, c, RNIC_CM_SIDR_REP);
	msg.sidr_rep.status = status;
	msg.sidr_rep.qpn = qpn;
	msg.sidr_rep.qkey = qkey;
	msg.sidr_rep.service_id = c->service_id;
	set_private(&msg, private_data, len);
	send_once(cm, c, &msg);
	return 0;
}

void rnic_cm_destroy(struct rnic_cm *cm, uint64_t now, uint32_t conn)
{
	struct rnic_cm_conn *c = get(cm, conn);

	if (!c)
		return;
	c->orphan = true;
	switch (c->state) {
	case RNIC_CM_REQ_SENT:
	case RNIC_CM_MRA_REQ_RCVD:
		send_rej(cm, c, RNIC_CM_ABOUT_REQ, RNIC_CM_TIMEOUT, NULL, 0);
		break;
	case RNIC_CM_SIDR_REQ_RCVD:
	case RNIC_CM_REQ_RCVD:
	case RNIC_CM_MRA_REQ_SENT:
	case RNIC_CM_REP_SENT:
	case RNIC_CM_MRA_REP_RCVD:
	case RNIC_CM_REP_RCVD:
	case RNIC_CM_MRA_REP_SENT:
		rnic_cm_reject(cm, now, conn, RNIC_CM_CONSUMER, NULL, 0);
		break;
	case RNIC_CM_ESTABLISHED:
		send_dreq(cm, now, c);
		return;
	case RNIC_CM_DREQ_SENT:
	case RNIC_CM_TIMEWAIT:
		return;
	}
	free_conn(cm, c);
}

/* ---- attributes of the QP --------------------------------------------- */

static void path_attr(struct rnic_av *av, const struct rnic_cm_path *path)
{
	av->dlid = path->dlid;
	av->sl = path->sl;
	av->static_rate = path->rate;
	av->port_num = path->port;
	av->is_global = path->global;
	if (!path->global)
		return;
	memcpy(av->dgid, path->dgid, 16);
	av->sgid_index = path->sgid_index;
	av->flow_label = path->flow_label;
	av->hop_limit = path->hop_limit;
	av->traffic_class = path->traffic_class;
}

static void init_attr(const struct rnic_cm_conn *c, struct rnic_qp_attr *attr,
		      uint32_t *mask)
{
	*mask = RNIC_QP_STATE | RNIC_QP_PKEY_INDEX | RNIC_QP_PORT |
		RNIC_QP_ACCESS;
	attr->port_num = c->path.port;
	attr->access = RNIC_REMOTE_WRITE;
	if (c->responder_resources)
		attr->access |= RNIC_REMOTE_READ | RNIC_REMOTE_ATOMIC;
}

static void rtr_attr(const struct rnic_cm_conn *c, struct rnic_qp_attr *attr,
		     uint32_t *mask)
{
	*mask = RNIC_QP_STATE | RNIC_QP_AV | RNIC_QP_PATH_MTU |
		RNIC_QP_DEST_QPN | RNIC_QP_RQ_PSN;
	path_attr(&attr->av, &c->path);
	attr->path_mtu = c->path.mtu;
	attr->dest_qpn = c->peer_qpn;
	attr->rq_psn = c->rq_psn;
	if (c->transport == RNIC_CM_UC)
		return;
	*mask |= RNIC_QP_MAX_DEST_RD_ATOMIC | RNIC_QP_MIN_RNR_TIMER;
	attr->max_dest_rd_atomic = c->responder_resources;
}

static void rts_attr(const struct rnic_cm_conn *c, struct rnic_qp_attr *attr,
		     uint32_t *mask)
{
	*mask = RNIC_QP_STATE | RNIC_QP_SQ_PSN;
	attr->sq_psn = c->sq_psn;
	if (c->transport == RNIC_CM_UC)
		return;
	*mask |= RNIC_QP_TIMEOUT | RNIC_QP_RETRY_CNT | RNIC_QP_RNR_RETRY |
		 RNIC_QP_MAX_RD_ATOMIC;
	attr->timeout = c->ack_timeout;
	attr->retry_cnt = c->retry_count;
	attr->rnr_retry = c->rnr_retry_count;
	attr->max_rd_atomic = c->initiator_depth;
}

int rnic_cm_qp_attr(const struct rnic_cm *cm, uint32_t conn,
		    struct rnic_qp_attr *attr, uint32_t *mask)
{
	const struct rnic_cm_conn *c = get(cm, conn);
	uint32_t state = attr->state;

	if (!c)
		return EINVAL;
	memset(attr, 0, sizeof(*attr));
	attr->state = state;
	switch (c->state) {
	case RNIC_CM_REQ_SENT:
	case RNIC_CM_MRA_REQ_RCVD:
		if (state != RNIC_INIT)
			return EINVAL;
		break;
	case RNIC_CM_REQ_RCVD:
	case RNIC_CM_MRA_REQ_SENT:
	case RNIC_CM_REP_SENT:
	case RNIC_CM_MRA_REP_RCVD:
	case RNIC_CM_REP_RCVD:
	case RNIC_CM_MRA_REP_SENT:
	case RNIC_CM_ESTABLISHED:
		break;
	default:
		return EINVAL;
	}
	switch (state) {
	case RNIC_INIT:
		init_attr(c, attr, mask);
		return 0;
	case RNIC_RTR:
		rtr_attr(c, attr, mask);
		return 0;
	case RNIC_RTS:
		rts_attr(c, attr, mask);
		return 0;
	}
	return EINVAL;
}

/* ---- receiving -------------------------------------------------------- */

/* An answer to somebody of whom nothing is known. */
static void answer_stranger(struct rnic_cm *cm, const struct rnic_cm_path *path,
			    const struct rnic_cm_msg *msg, uint32_t attr,
			    uint32_t about, uint32_t reason)
{
	uint8_t mad[RNIC_MAD_LEN];
	struct rnic_cm_msg answer = {
		.attr = attr,
		.tid = msg->tid,
		.local_id = msg->remote_id,
		.remote_id = msg->local_id,
	};

	if (attr == RNIC_CM_REJ) {
		answer.rej.about = about;
		answer.rej.reason = reason;
	}
	rnic_cm_pack(&answer, mad);
	cm->ops->send(cm->host, path, mad);
}

/* The path of a REQ, from the receiver's side. */
static void take_path(struct rnic_cm_conn *c, const struct rnic_cm_path *rx,
		      const struct rnic_cm_msg *msg)
{
	const struct rnic_cm_req_path *from = &msg->req.path;

	c->path = *rx;
	memcpy(c->path.dgid, from->local_gid, 16);
	memcpy(c->path.sgid, from->remote_gid, 16);
	c->path.dlid = from->local_lid;
	c->path.slid = from->remote_lid;
	c->path.sl = from->sl;
	c->path.rate = from->rate;
	c->path.flow_label = from->flow_label;
	c->path.traffic_class = from->traffic_class;
	c->path.hop_limit = from->hop_limit;
	c->path.pkey = msg->req.pkey;
	c->path.global = !from->subnet_local;
	if (msg->req.mtu >= RNIC_MTU_256 && msg->req.mtu < c->path.mtu)
		c->path.mtu = msg->req.mtu;
	c->ack_timeout = from->ack_timeout;
	c->path.life_time = from->ack_timeout ? from->ack_timeout - 1 : 0;
}

static void duplicate_req(struct rnic_cm *cm, struct rnic_cm_conn *c)
{
	switch (c->state) {
	case RNIC_CM_REQ_RCVD:
	case RNIC_CM_MRA_REQ_SENT:
		c->state = RNIC_CM_MRA_REQ_SENT;
		send_mra(cm, c, RNIC_CM_ABOUT_REQ);
		break;
	case RNIC_CM_REP_SENT:
	case RNIC_CM_MRA_REP_RCVD:
		send_again(cm, c);
		break;
	case RNIC_CM_TIMEWAIT:
		send_rej(cm, c, RNIC_CM_ABOUT_REQ, RNIC_CM_STALE_CONN, NULL, 0);
		break;
	default:
		break;
	}
}

/* Asks who wants it; false: nobody, it is gone. */
static bool offer(struct rnic_cm *cm, uint64_t now, struct rnic_cm_conn *c,
		  const struct rnic_cm_msg *msg)
{
	uint32_t id = c->id;
	int reason = cm->ops->request(cm->host, id, &c->path, msg);

	if (!reason)
		return true;
	if (reason == RNIC_CM_DROP)
		;
	else if (c->state == RNIC_CM_SIDR_REQ_RCVD)
		rnic_cm_sidr_reply(cm, now, id, reason, 0, 0, NULL, 0);
	else
		rnic_cm_reject(cm, now, id, reason, NULL, 0);
	free_conn(cm, c);
	return false;
}

static void receive_req(struct rnic_cm *cm, uint64_t now,
			const struct rnic_cm_path *path,
			const struct rnic_cm_msg *msg)
{
	struct rnic_cm_conn *c =
		find_peer(cm, msg->local_id, msg->req.ca_guid, false);

	if (c) {
		duplicate_req(cm, c);
		return;
	}
	if (msg->req.transport != RNIC_CM_RC &&
	    msg->req.transport != RNIC_CM_UC &&
	    (msg->req.transport != RNIC_CM_EXTENDED ||
	     msg->req.extended_transport != 1)) {
		answer_stranger(cm, path, msg, RNIC_CM_REJ, RNIC_CM_ABOUT_REQ,
				RNIC_CM_INVALID_TRANSPORT);
		return;
	}
	c = new_conn(cm);
	if (!c) {
		answer_stranger(cm, path, msg, RNIC_CM_REJ, RNIC_CM_ABOUT_REQ,
				RNIC_CM_NO_RESOURCES);
		return;
	}
	forget_peer(cm, c);
	set_peer(cm, c, msg->local_id, msg->req.ca_guid);
	c->state = RNIC_CM_REQ_RCVD;
	c->passive = true;
	c->tid = msg->tid;
	take_path(c, path, msg);
	c->answer_time = msg->req.local_timeout;
	c->peer_qpn = msg->req.qpn;
	c->sq_psn = msg->req.psn;
	c->transport = msg->req.transport;
	c->extended_transport = msg->req.extended_transport;
	/* Each side's one is the other side's other. */
	c->responder_resources = msg->req.initiator_depth;
	c->initiator_depth = msg->req.responder_resources;
	c->retry_count = msg->req.retry_count;
	c->rnr_retry_count = msg->req.rnr_retry_count;
	c->service_id = msg->req.service_id;
	offer(cm, now, c, msg);
}

static void receive_mra(struct rnic_cm *cm, uint64_t now,
			const struct rnic_cm_msg *msg)
{
	struct rnic_cm_conn *c = get(cm, msg->remote_id);
	uint64_t until = now + cm_time(msg->mra.service_timeout) +
			 cm_time(c ? c->answer_time : 0);

	if (!c)
		return;
	switch (c->state) {
	case RNIC_CM_REQ_SENT:
	case RNIC_CM_MRA_REQ_RCVD:
		if (msg->mra.about != RNIC_CM_ABOUT_REQ)
			return;
		c->state = RNIC_CM_MRA_REQ_RCVD;
		set_timer(cm, c, until);
		break;
	case RNIC_CM_REP_SENT:
	case RNIC_CM_MRA_REP_RCVD:
		if (msg->mra.about != RNIC_CM_ABOUT_REP ||
		    c->peer_id != msg->local_id)
			return;
		c->state = RNIC_CM_MRA_REP_RCVD;
		set_timer(cm, c, until);
		break;
	}
}

/* A peer that has given up may never have learnt our number. */
static struct rnic_cm_conn *rejected(struct rnic_cm *cm,
				     const struct rnic_cm_msg *msg)
{
	uint64_t guid = 0;
	int i;

	if (msg->remote_id || msg->rej.reason != RNIC_CM_TIMEOUT ||
	    msg->rej.info_len < 8)
		return get(cm, msg->remote_id);
	for (i = 0; i < 8; i++)
		guid = guid << 8 | msg->rej.info[i];
	return find_peer(cm, msg->local_id, guid, false);
}

static void receive_rej(struct rnic_cm *cm, uint64_t now,
			const struct rnic_cm_msg *msg)
{
	struct rnic_cm_conn *c = rejected(cm, msg);

	if (!c || (c->peer_id && c->peer_id != msg->local_id))
		return;
	switch (c->state) {
	case RNIC_CM_REQ_SENT:
	case RNIC_CM_MRA_REQ_RCVD:
	case RNIC_CM_REQ_RCVD:
	case RNIC_CM_MRA_REQ_SENT:
	case RNIC_CM_REP_SENT:
	case RNIC_CM_MRA_REP_RCVD:
	case RNIC_CM_REP_RCVD:
	case RNIC_CM_MRA_REP_SENT:
		come_to_rest(cm, c, RNIC_CM_EV_REJECTED, msg);
		break;
	case RNIC_CM_ESTABLISHED:
	case RNIC_CM_DREQ_SENT:
		enter_timewait(cm, now, c);
		tell(cm, c, RNIC_CM_EV_REJECTED, msg);
		break;
	}
}

static void receive_rep(struct rnic_cm *cm, uint64_t now,
			const struct rnic_cm_path *path,
			const struct rnic_cm_msg *msg)
{
	struct rnic_cm_conn *c = get(cm, msg->remote_id);

	(void)now;
	if (!c || c->passive) {
		answer_stranger(cm, path, msg, RNIC_CM_REJ, RNIC_CM_ABOUT_REP,
				RNIC_CM_INVALID_COMM_ID);
		return;
	}
	switch (c->state) {
	case RNIC_CM_REQ_SENT:
	case RNIC_CM_MRA_REQ_RCVD:
		stop_timer(c);
		forget_peer(cm, c);
		set_peer(cm, c, msg->local_id, msg->rep.ca_guid);
		c->state = RNIC_CM_REP_RCVD;
		c->peer_qpn = msg->rep.qpn;
		c->sq_psn = msg->rep.psn;
		c->responder_resources = msg->rep.initiator_depth;
		c->initiator_depth = msg->rep.responder_resources;
		c->rnr_retry_count = msg->rep.rnr_retry_count;
		tell(cm, c, RNIC_CM_EV_REP, msg);
		break;
	case RNIC_CM_REP_RCVD:
	case RNIC_CM_MRA_REP_SENT:
		if (c->peer_id != msg->local_id)
			return;
		c->state = RNIC_CM_MRA_REP_SENT;
		send_mra(cm, c, RNIC_CM_ABOUT_REP);
		break;
	case RNIC_CM_ESTABLISHED:
		if (c->peer_id == msg->local_id)
			send_again(cm, c);
		break;
	}
}

static void receive_rtu(struct rnic_cm *cm, const struct rnic_cm_msg *msg)
{
	struct rnic_cm_conn *c = get(cm, msg->remote_id);

	if (!c || c->peer_id != msg->local_id ||
	    (c->state != RNIC_CM_REP_SENT && c->state != RNIC_CM_MRA_REP_RCVD))
		return;
	stop_timer(c);
	c->state = RNIC_CM_ESTABLISHED;
	tell(cm, c, RNIC_CM_EV_ESTABLISHED, msg);
}

static void receive_dreq(struct rnic_cm *cm, uint64_t now,
			 const struct rnic_cm_path *path,
			 const struct rnic_cm_msg *msg)
{
	struct rnic_cm_conn *c = get(cm, msg->remote_id);

	if (!c || c->peer_id != msg->local_id) {
		/* Whatever it was, it is over: he need not ask again. */
		answer_stranger(cm, path, msg, RNIC_CM_DREP, 0, 0);
		return;
	}
	if (c->local_qpn != msg->dreq.remote_qpn)
		return;
	switch (c->state) {
	case RNIC_CM_REP_SENT:
	case RNIC_CM_MRA_REP_RCVD:
	case RNIC_CM_REP_RCVD:
	case RNIC_CM_MRA_REP_SENT:
	case RNIC_CM_ESTABLISHED:
	case RNIC_CM_DREQ_SENT:
		/*
		 * Nothing is left to agree on.  Whoever hangs up knows that it
		 * is done before the peer's program has even been scheduled.
		 */
		c->tid = msg->tid;
		send_drep(cm, now, c);
		tell(cm, c, RNIC_CM_EV_DISCONNECTED, msg);
		break;
	case RNIC_CM_TIMEWAIT:
	case RNIC_CM_IDLE: /* at rest again: our DREP was lost */
		answer_stranger(cm, path, msg, RNIC_CM_DREP, 0, 0);
		break;
	}
}

static void receive_drep(struct rnic_cm *cm, uint64_t now,
			 const struct rnic_cm_msg *msg)
{
	struct rnic_cm_conn *c = get(cm, msg->remote_id);

	if (!c || c->peer_id != msg->local_id || c->state != RNIC_CM_DREQ_SENT)
		return;
	enter_timewait(cm, now, c);
	tell(cm, c, RNIC_CM_EV_DISCONNECTED, msg);
}

static void receive_sidr_req(struct rnic_cm *cm, uint64_t now,
			     const struct rnic_cm_path *path,
			     const struct rnic_cm_msg *msg)
{
	struct rnic_cm_conn *c;
	uint64_t who;

	/* It names no GUID: the port that it comes from is one. */
	memcpy(&who, path->dgid + 8, sizeof(who));
	who ^= path->dlid;
	if (find_peer(cm, msg->local_id, who, true))
		return; /* he is being served */
	c = new_conn(cm);
	if (!c)
		return; /* he will ask again */
	forget_peer(cm, c);
	set_peer(cm, c, msg->local_id, who);
	c->state = RNIC_CM_SIDR_REQ_RCVD;
	c->passive = true;
	c->tid = msg->tid;
	c->path = *path;
	c->path.pkey = msg->sidr_req.pkey;
	c->service_id = msg->sidr_req.service_id;
	offer(cm, now, c, msg);
}

static void receive_sidr_rep(struct rnic_cm *cm, const struct rnic_cm_msg *msg)
{
	struct rnic_cm_conn *c = get(cm, msg->remote_id);

	if (c && c->state == RNIC_CM_SIDR_REQ_SENT)
		come_to_rest(cm, c, RNIC_CM_EV_SIDR_REP, msg);
}

void rnic_cm_receive(struct rnic_cm *cm, uint64_t now,
		     const struct rnic_cm_path *path, const uint8_t *mad,
		     size_t len)
{
	struct rnic_cm_msg msg;

	if (!rnic_cm_unpack(&msg, mad, len))
		return;
	switch (msg.attr) {
	case RNIC_CM_REQ:
		receive_req(cm, now, path, &msg);
		break;
	case RNIC_CM_MRA:
		receive_mra(cm, now, &msg);
		break;
	case RNIC_CM_REJ:
		receive_rej(cm, now, &msg);
		break;
	case RNIC_CM_REP:
		receive_rep(cm, now, path, &msg);
		break;
	case RNIC_CM_RTU:
		receive_rtu(cm, &msg);
		break;
	case RNIC_CM_DREQ:
		receive_dreq(cm, now, path, &msg);
		break;
	case RNIC_CM_DREP:
		receive_drep(cm, now, &msg);
		break;
	case RNIC_CM_SIDR_REQ:
		receive_sidr_req(cm, now, path, &msg);
		break;
	case RNIC_CM_SIDR_REP:
		receive_sidr_rep(cm, &msg);
		break;
	}
}

/* ---- time -------------------------------------------------------------- */

static void repeat(struct rnic_cm *cm, uint64_t now, struct rnic_cm_conn *c)
{
	c->retries--;
	if (c->state == RNIC_CM_MRA_REQ_RCVD)
		c->state = RNIC_CM_REQ_SENT;
	if (c->state == RNIC_CM_MRA_REP_RCVD)
		c->state = RNIC_CM_REP_SENT;
	set_timer(cm, c, now + cm_time(c->answer_time));
	send_again(cm, c);
}

static void give_up(struct rnic_cm *cm, uint64_t now, struct rnic_cm_conn *c)
{
	switch (c->state) {
	case RNIC_CM_DREQ_SENT:
		enter_timewait(cm, now, c);
		tell(cm, c, RNIC_CM_EV_DISCONNECTED, NULL);
		return;
	case RNIC_CM_REQ_SENT:
	case RNIC_CM_MRA_REQ_RCVD:
		send_rej(cm, c, RNIC_CM_ABOUT_REQ, RNIC_CM_TIMEOUT, NULL, 0);
		break;
	case RNIC_CM_REP_SENT:
	case RNIC_CM_MRA_REP_RCVD:
		send_rej(cm, c, RNIC_CM_ABOUT_OTHER, RNIC_CM_TIMEOUT, NULL, 0);
		break;
	}
	come_to_rest(cm, c, RNIC_CM_EV_UNREACHABLE, NULL);
}

static void due(struct rnic_cm *cm, uint64_t now, struct rnic_cm_conn *c)
{
	c->deadline = UINT64_MAX;
	if (c->state == RNIC_CM_TIMEWAIT)
		come_to_rest(cm, c, RNIC_CM_EV_TIMEWAIT_EXIT, NULL);
	else if (c->retries)
		repeat(cm, now, c);
	else
		give_up(cm, now, c);
}

uint64_t rnic_cm_tick(struct rnic_cm *cm, uint64_t now)
{
	uint64_t first = UINT64_MAX;
	uint32_t i;

	if (now < cm->next_tick)
		return cm->next_tick;
	cm->next_tick = UINT64_MAX;
	for (i = 0; i < cm->used; i++)
		if (cm->conn[i].state && cm->conn[i].deadline <= now)
			due(cm, now, &cm->conn[i]);
	for (i = 0; i < cm->used; i++)
		if (cm->conn[i].state && cm->conn[i].deadline < first)
			first = cm->conn[i].deadline;
	cm->next_tick = first;
	return first;
}
