// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The commands of rdma_cm, and the events that come of them. */
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include "softnic/cma_id.h"

#define MAX_BACKLOG 1024
#define MAX_RETRY 7
#define QPT_UC 3
#define QPT_XRC_INI 9

uint32_t cma_random(struct cma *cma)
{
	/* xorshift64* */
	cma->random ^= cma->random >> 12;
	cma->random ^= cma->random << 25;
	cma->random ^= cma->random >> 27;
	return (uint32_t)(cma->random * 0x2545f4914f6cdd1dull >> 32);
}

/* ---- ids ----------------------------------------------------------------- */

static struct cma_id *new_id(struct cma *cma, struct cma_channel *ch)
{
	struct cma_id *id;
	uint32_t i;

	if (cma->live >= CMA_MAX_ID - 1)
		return NULL;
	id = calloc(1, sizeof(*id));
	if (!id)
		return NULL;
	do {
		i = cma->next_id = cma->next_id % (CMA_MAX_ID - 1) + 1;
	} while (cma->by_id[i]);
	cma->by_id[i] = id;
	cma->live++;
	id->id = i;
	id->psn = cma_random(cma) & 0xffffff;
	id->channel = ch;
	id->next = cma->ids;
	if (id->next)
		id->next->prev = id;
	cma->ids = id;
	return id;
}

static void set_conn(struct cma *cma, struct cma_id *id, uint32_t conn)
{
	if (id->conn)
		cma->by_conn[id->conn % RNIC_CM_MAX_CONN] = NULL;
	id->conn = conn;
	if (conn)
		cma->by_conn[conn % RNIC_CM_MAX_CONN] = id;
}

static void drop_conn(struct cma *cma, struct cma_id *id)
{
	uint32_t conn = id->conn;

	set_conn(cma, id, 0);
	rnic_cm_destroy(&cma->cm, cma->now, conn);
}

static void destroy_id(struct cma *cma, struct cma_id *id)
{
	struct cma_event *e, *next;

	cma_leave_all(cma, id);
	e = cma_take_events(id, NULL);
	/* Requests that nobody has fetched. */
	for (; e; e = next) {
		next = e->next;
		if (e->request)
			destroy_id(cma, e->request);
		free(e);
	}
	drop_conn(cma, id);
	if (id->prev)
		id->prev->next = id->next;
	else
		cma->ids = id->next;
	if (id->next)
		id->next->prev = id->prev;
	cma->by_id[id->id] = NULL;
	cma->live--;
	free(id);
}

/* ---- what the connection manager says --------------------------------------
 */

/* To the port that has the address; where none has it, nobody hears it. */
static void cm_send(void *host, const struct rnic_cm_path *path,
		    const uint8_t mad[RNIC_MAD_LEN])
{
	struct cma *cma = host;
	struct cma_mad *m = calloc(1, sizeof(*m));

	if (!m)
		return;
	m->path = *path;
	memcpy(m->path.sgid, path->dgid, 16);
	memcpy(m->path.dgid, path->sgid, 16);
	m->path.slid = path->dlid;
	m->path.dlid = path->slid;
	if (!cma_find_gid(cma->rnic, m->path.sgid, &m->path.dev, &m->path.port,
			  &m->path.sgid_index)) {
		free(m);
		return;
	}
	memcpy(m->mad, mad, RNIC_MAD_LEN);
	*cma->last_mad = m;
	cma->last_mad = &m->next;
}

static void deliver_mads(struct cma *cma)
{
	struct cma_mad *m;

	while ((m = cma->first_mad)) {
		cma->first_mad = m->next;
		if (!m->next)
			cma->last_mad = &cma->first_mad;
		rnic_cm_receive(&cma->cm, cma->now, &m->path, m->mad,
				RNIC_MAD_LEN);
		free(m);
	}
}

static void take_ip(union cma_addr *addr, uint32_t version, const uint8_t *ip,
		    uint16_t port)
{
	memset(addr, 0, sizeof(*addr));
	if (version == 4) {
		addr->family = AF_INET;
		memcpy(&addr->in.sin_addr, ip, 4);
	} else {
		addr->family = AF_INET6;
		memcpy(&addr->in6.sin6_addr, ip, 16);
	}
	cma_set_port(addr, port);
}

static void take_ib(union cma_addr *addr, const uint8_t gid[16], uint16_t pkey,
		    uint64_t service_id)
{
	memset(addr, 0, sizeof(*addr));
	addr->family = CMA_AF_IB;
	memcpy(addr->ib.sib_addr, gid, 16);
	addr->ib.sib_pkey = __builtin_bswap16(pkey);
	addr->ib.sib_sid = __builtin_bswap64(service_id);
	addr->ib.sib_sid_mask = ~0ull;
}

/* Both ends as the request names them, and the device that it is for. */
static void take_ends(struct cma *cma, struct cma_id *id,
		      const struct rnic_cm_path *path, uint64_t service_id,
		      const struct rnic_cm_ip *ip)
{
	int dev;

	id->path = *path;
	id->has_device = true;
	if (!ip) {
		take_ib(&id->src, path->sgid, path->pkey, service_id);
		take_ib(&id->dst, path->dgid, path->pkey, 0);
		return;
	}
	take_ip(&id->src, ip->version, ip->dst, (uint16_t)service_id);
	take_ip(&id->dst, ip->version, ip->src, ip->src_port);
	/* Ethernet devices on one interface share its GIDs. */
	dev = cma->ops->device(cma->host, &id->src);
	if (dev >= 0)
		id->path.dev = (uint32_t)dev;
}

static bool same_type(const struct cma_id *listener,
		      const struct rnic_cm_msg *msg)
{
	if (msg->attr == RNIC_CM_SIDR_REQ)
		return cma_is_ud(listener);
	return !cma_is_ud(listener);
}

static void request_param(struct cma_event *e, const struct rnic_cm_msg *msg)
{
	struct rdma_ucm_conn_param *p = &e->resp.param.conn;

	/* What one side can start is what the other has to bear. */
	p->responder_resources = msg->req.initiator_depth;
	p->initiator_depth = msg->req.responder_resources;
	p->flow_control = msg->req.flow_control;
	p->retry_count = msg->req.retry_count;
	p->rnr_retry_count = msg->req.rnr_retry_count;
	p->srq = msg->req.srq;
	p->qp_num = msg->req.qpn;
	e->resp.ece.vendor_id = msg->req.vendor_id;
	e->resp.ece.attr_mod = msg->modifier;
}

/* The listener gets an event, and with it a new id. */
static bool offer(struct cma *cma, struct cma_id *listener, uint32_t conn,
		  const struct rnic_cm_path *path,
		  const struct rnic_cm_msg *msg, uint64_t service_id,
		  const struct rnic_cm_ip *ip)
{
	uint32_t header = ip ? RNIC_CM_IP_HEADER : 0;
	struct cma_event *e = cma_new_event(listener, EV_CONNECT_REQUEST, 0);
	struct cma_id *id = e ? new_id(cma, listener->channel) : NULL;

	if (!id) {
		free(e);
		return false;
	}
	id->state = CMA_CONNECT;
	id->passive = true;
	id->ps = listener->ps;
	id->qp_type = listener->qp_type;
	take_ends(cma, id, path, service_id, ip);
	set_conn(cma, id, conn);
	cma_set_private(id, e, msg->private_data + header,
			rnic_cm_private_len(msg->attr) - header);
	if (!cma_is_ud(id))
		request_param(e, msg);
	e->resp.id = id->id;
	e->request = id;
	id->unseen = true;
	listener->backlog--;
	cma_queue_event(cma, listener, e);
	return true;
}

static int cm_request(void *host, uint32_t conn,
		      const struct rnic_cm_path *path,
		      const struct rnic_cm_msg *msg)
{
	bool sidr = msg->attr == RNIC_CM_SIDR_REQ;
	uint64_t service_id =
		sidr ? msg->sidr_req.service_id : msg->req.service_id;
	struct cma *cma = host;
	struct cma_id *listener;
	struct rnic_cm_ip ip;
	bool has_ip = rnic_cm_ip_unpack(&ip, msg->private_data);

	listener = cma_listener(cma, service_id, has_ip ? &ip : NULL, path);
	if (!listener || !same_type(listener, msg))
		return sidr ? RNIC_CM_SIDR_UNSUPPORTED :
			      RNIC_CM_INVALID_SERVICE_ID;
	if (!listener->backlog ||
	    !offer(cma, listener, conn, path, msg, service_id,
		   listener->src.family == CMA_AF_IB ? NULL : &ip))
		return RNIC_CM_DROP;
	return 0;
}

static void reply_param(struct cma_event *e, const struct rnic_cm_msg *msg)
{
	struct rdma_ucm_conn_param *p = &e->resp.param.conn;

	p->responder_resources = msg->rep.initiator_depth;
	p->initiator_depth = msg->rep.responder_resources;
	p->flow_control = msg->rep.flow_control;
	p->rnr_retry_count = msg->rep.rnr_retry_count;
	p->srq = msg->rep.srq;
	p->qp_num = msg->rep.qpn;
	e->resp.ece.vendor_id = msg->rep.vendor_h << 16 |
				msg->rep.vendor_m << 8 | msg->rep.vendor_l;
	e->resp.ece.attr_mod = msg->modifier;
}

static void sidr_param(struct cma_id *id, struct cma_event *e,
		       const struct rnic_cm_msg *msg)
{
	struct rdma_ucm_ud_param *p = &e->resp.param.ud;

	if (msg->sidr_rep.status) {
		e->resp.event = EV_UNREACHABLE;
		e->resp.status = msg->sidr_rep.status;
		return;
	}
	p->qp_num = msg->sidr_rep.qpn;
	p->qkey = id->qkey = msg->sidr_rep.qkey;
	cma_ud_ah(&id->path, &p->ah_attr);
}

static const struct {
	uint32_t type;
	int status;
} told[] = {
	[RNIC_CM_EV_REP] = {EV_CONNECT_RESPONSE, 0},
	[RNIC_CM_EV_ESTABLISHED] = {EV_ESTABLISHED, 0},
	[RNIC_CM_EV_REJECTED] = {EV_REJECTED, 0},
	[RNIC_CM_EV_UNREACHABLE] = {EV_UNREACHABLE, -ETIMEDOUT},
	[RNIC_CM_EV_DISCONNECTED] = {EV_DISCONNECTED, 0},
	[RNIC_CM_EV_TIMEWAIT_EXIT] = {EV_TIMEWAIT_EXIT, 0},
	[RNIC_CM_EV_SIDR_REP] = {EV_ESTABLISHED, 0},
};

static void cm_event(void *host, uint32_t conn, enum rnic_cm_event event,
		     const struct rnic_cm_msg *msg)
{
	struct cma *cma = host;
	struct cma_id *id = cma->by_conn[conn % RNIC_CM_MAX_CONN];
	struct cma_event *e;

	if (!id || id->conn != conn)
		return;
	if (event == RNIC_CM_EV_DISCONNECTED) {
		if (id->state != CMA_CONNECT)
			return;
		id->state = CMA_DISCONNECT;
	}
	/* Who has not accepted it yet will see when he does. */
	if (!id->uid)
		return;
	e = cma_new_event(id, told[event].type, told[event].status);
	if (!e)
		return;
	if (msg)
		cma_set_private(id, e, msg->private_data,
				rnic_cm_private_len(msg->attr));
	if (event == RNIC_CM_EV_REP)
		reply_param(e, msg);
	if (event == RNIC_CM_EV_REJECTED)
		e->resp.status = msg->rej.reason;
	if (event == RNIC_CM_EV_SIDR_REP)
		sidr_param(id, e, msg);
	cma_queue_event(cma, id, e);
}

static const struct rnic_cm_ops cm_ops = {cm_send, cm_request, cm_event};

/* ---- commands
 * ----------------------------------------------------------------- */

/* One command being executed. */
struct command {
	struct cma *cma;
	struct cma_channel *ch;
	struct cma_id *id; /* that it names, if it names one */
	const struct cma_req *req;
	struct cma_rsp *rsp;
};

/* The ABI's addresses have room for more than ours. */
static void take_addr(union cma_addr *to,
		      const struct __kernel_sockaddr_storage *from, size_t len)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from, len < sizeof(*to) ? len : sizeof(*to));
}

static int find_id(struct command *c, uint32_t number)
{
	struct cma_id *id = number < CMA_MAX_ID ? c->cma->by_id[number] : NULL;

	if (!id || id->unseen)
		return ENOENT;
	if (id->channel != c->ch)
		return EINVAL;
	c->id = id;
	return 0;
}

static int do_create_id(struct command *c)
{
	const struct rdma_ucm_create_id *cmd = &c->req->create_id;
	struct cma_id *id;
	uint8_t type;

	switch (cmd->ps) {
	case RDMA_PS_TCP:
		type = RNIC_QPT_RC;
		break;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		type = RNIC_QPT_UD;
		break;
	case RDMA_PS_IB:
		type = cmd->qp_type;
		break;
	default:
		return EINVAL;
	}
	id = new_id(c->cma, c->ch);
	if (!id)
		return ENOMEM;
	id->uid = cmd->uid;
	id->ps = cmd->ps;
	id->qp_type = type;
	c->rsp->create_id.id = id->id;
	c->rsp->len = sizeof(c->rsp->create_id);
	return 0;
}

static int do_destroy_id(struct command *c)
{
	c->rsp->destroy_id.events_reported = c->id->reported;
	c->rsp->len = sizeof(c->rsp->destroy_id);
	destroy_id(c->cma, c->id);
	return 0;
}

static int do_bind(struct command *c)
{
	const struct rdma_ucm_bind *cmd = &c->req->bind;
	union cma_addr addr;

	take_addr(&addr, &cmd->addr, sizeof(cmd->addr));
	if (cmd->reserved || !cmd->addr_size ||
	    cmd->addr_size != cma_addr_size(&addr))
		return EINVAL;
	return cma_bind(c->cma, c->id, &addr);
}

static int do_resolve_addr(struct command *c)
{
	const struct rdma_ucm_resolve_addr *cmd = &c->req->resolve_addr;
	union cma_addr src, dst;
	int err;

	take_addr(&src, &cmd->src_addr, sizeof(cmd->src_addr));
	take_addr(&dst, &cmd->dst_addr, sizeof(cmd->dst_addr));
	if (cmd->reserved ||
	    (cmd->src_size && cmd->src_size != cma_addr_size(&src)) ||
	    !cmd->dst_size || cmd->dst_size != cma_addr_size(&dst))
		return EINVAL;
	err = cma_resolve(c->cma, c->id, cmd->src_size ? &src : NULL, &dst);
	/* Nobody there is no mistake of the caller's. */
	if (err == EHOSTUNREACH)
		cma_tell(c->cma, c->id, EV_ADDR_ERROR, -EHOSTUNREACH);
	else if (!err)
		cma_tell(c->cma, c->id, EV_ADDR_RESOLVED, 0);
	return err == EHOSTUNREACH ? 0 : err;
}

static int do_resolve_route(struct command *c)
{
	struct cma_id *id = c->id;

	if (id->state != CMA_ADDR_RESOLVED)
		return EINVAL;
	id->state = CMA_ROUTE_RESOLVED;
	if (id->path.global)
		id->path.traffic_class = id->tos;
	cma_tell(c->cma, id, EV_ROUTE_RESOLVED, 0);
	return 0;
}

static int do_query_route(struct command *c)
{
	return cma_query_route(c->cma, c->id, c->rsp);
}

static int do_query(struct command *c)
{
	return cma_query(c->cma, c->id, c->req->query.option, c->rsp);
}

static int do_init_qp_attr(struct command *c)
{
	return cma_init_qp_attr(c->cma, c->id, c->req->init_qp_attr.qp_state,
				c->rsp);
}

/* The user's private data behind the header that IP addresses need. */
static int put_private(const struct cma_id *id, uint8_t *to, uint32_t max,
		       const struct rdma_ucm_conn_param *p, uint32_t *len)
{
	struct rnic_cm_ip ip = {.src_port = cma_port(&id->src)};
	uint32_t header = 0;

	if (id->src.family != CMA_AF_IB)
		header = RNIC_CM_IP_HEADER;
	*len = header + p->private_data_len;
	if (*len > max)
		return EINVAL;
	memcpy(to + header, p->private_data, p->private_data_len);
	if (!header)
		return 0;
	if (id->src.family == AF_INET) {
		ip.version = 4;
		memcpy(ip.src, &id->src.in.sin_addr, 4);
		memcpy(ip.dst, &id->dst.in.sin_addr, 4);
	} else {
		ip.version = 6;
		memcpy(ip.src, &id->src.in6.sin6_addr, 16);
		memcpy(ip.dst, &id->dst.in6.sin6_addr, 16);
	}
	rnic_cm_ip_pack(&ip, to);
	return 0;
}

static uint8_t at_most(uint8_t value, uint8_t max)
{
	return value < max ? value : max;
}

static void take_param(struct cma *cma, struct cma_id *id,
		       struct rnic_cm_param *to,
		       const struct rdma_ucm_conn_param *p,
		       const struct rdma_ucm_ece *ece)
{
	struct rnic_device_info info = {};

	rnic_device_info(cma->rnic, id->path.dev, &info);
	memset(to, 0, sizeof(*to));
	to->ca_guid = info.node_guid;
	to->qpn = p->qp_num & 0xffffff;
	to->psn = id->psn;
	to->responder_resources = p->responder_resources;
	to->initiator_depth = p->initiator_depth;
	to->flow_control = p->flow_control != 0;
	to->retry_count = at_most(p->retry_count, MAX_RETRY);
	to->rnr_retry_count = at_most(p->rnr_retry_count, MAX_RETRY);
	to->srq = p->srq != 0;
	to->ack_timeout = id->ack_timeout;
	to->vendor_id = ece->vendor_id & 0xffffff;
	to->vendor_options = ece->attr_mod;
	switch (id->qp_type) {
	case QPT_UC:
		to->transport = RNIC_CM_UC;
		break;
	case QPT_XRC_INI:
		to->transport = RNIC_CM_EXTENDED;
		to->extended_transport = 1;
		break;
	}
}

static int connect_rc(struct command *c, uint32_t conn)
{
	const struct rdma_ucm_connect *cmd = &c->req->connect;
	struct cma_id *id = c->id;
	struct rnic_cm_param p;
	int err;

	take_param(c->cma, id, &p, &cmd->conn_param, &cmd->ece);
	err = put_private(id, p.private_data, RNIC_CM_REQ_PRIVATE,
			  &cmd->conn_param, &p.private_len);
	if (err)
		return err;
	return rnic_cm_connect(&c->cma->cm, c->cma->now, conn, &id->path,
			       cma_service_id(id, &id->dst), &p);
}

static int connect_ud(struct command *c, uint32_t conn)
{
	const struct rdma_ucm_connect *cmd = &c->req->connect;
	uint8_t data[RNIC_CM_PRIVATE_MAX] = {0};
	struct cma_id *id = c->id;
	uint32_t len;
	int err;

	err = put_private(id, data, RNIC_CM_SIDR_REQ_PRIVATE, &cmd->conn_param,
			  &len);
	if (err)
		return err;
	return rnic_cm_sidr_request(&c->cma->cm, c->cma->now, conn, &id->path,
				    cma_service_id(id, &id->dst), data, len);
}

static int do_connect(struct command *c)
{
	struct cma_id *id = c->id;
	uint32_t conn;
	int err;

	if (!c->req->connect.conn_param.valid ||
	    id->state != CMA_ROUTE_RESOLVED)
		return EINVAL;
	err = rnic_cm_create(&c->cma->cm, &conn);
	if (err)
		return err;
	set_conn(c->cma, id, conn);
	err = cma_is_ud(id) ? connect_ud(c, conn) : connect_rc(c, conn);
	if (err)
		drop_conn(c->cma, id);
	else
		id->state = CMA_CONNECT;
	return err;
}

static int do_listen(struct command *c)
{
	static const union cma_addr any = {.in.sin_family = AF_INET};
	uint32_t backlog = c->req->listen.backlog;
	struct cma_id *id = c->id;
	int err = 0;

	if (id->state == CMA_IDLE)
		err = cma_bind(c->cma, id, &any);
	if (!err && id->state != CMA_BOUND)
		err = EINVAL;
	if (!err)
		err = cma_claim_port(c->cma, id);
	if (err)
		return err;
	id->backlog = backlog && backlog < MAX_BACKLOG ? backlog : MAX_BACKLOG;
	id->state = CMA_LISTEN;
	return 0;
}

/* What was wrong with the answer is not the peer's to wait for. */
static void refuse(struct command *c)
{
	rnic_cm_reject(&c->cma->cm, c->cma->now, c->id->conn, RNIC_CM_CONSUMER,
		       NULL, 0);
}

static int accept_rc(struct command *c)
{
	const struct rdma_ucm_accept *cmd = &c->req->accept;
	struct rnic_cm_param p;

	take_param(c->cma, c->id, &p, &cmd->conn_param, &cmd->ece);
	p.private_len = cmd->conn_param.private_data_len;
	if (p.private_len > RNIC_CM_REP_PRIVATE)
		return EINVAL;
	memcpy(p.private_data, cmd->conn_param.private_data, p.private_len);
	return rnic_cm_accept(&c->cma->cm, c->cma->now, c->id->conn, &p);
}

static int accept_ud(struct command *c)
{
	const struct rdma_ucm_conn_param *p = &c->req->accept.conn_param;

	if (c->id->src.family == CMA_AF_IB && p->qkey)
		c->id->qkey = p->qkey;
	return rnic_cm_sidr_reply(&c->cma->cm, c->cma->now, c->id->conn,
				  RNIC_CM_SIDR_OK, p->qp_num & 0xffffff,
				  cma_qkey(c->id), p->private_data,
				  p->private_data_len);
}

static int do_accept(struct command *c)
{
	const struct rdma_ucm_accept *cmd = &c->req->accept;
	struct cma_id *id = c->id;
	int err;

	if (id->state != CMA_CONNECT)
		return EINVAL;
	if (!cmd->conn_param.valid)
		err = rnic_cm_ready(&c->cma->cm, c->cma->now, id->conn);
	else
		err = cma_is_ud(id) ? accept_ud(c) : accept_rc(c);
	if (err)
		refuse(c);
	else if (cmd->conn_param.valid)
		id->uid = cmd->uid;
	return err;
}

static int do_reject(struct command *c)
{
	const struct rdma_ucm_reject *cmd = &c->req->reject;
	uint32_t reason = cmd->reason ? cmd->reason : RNIC_CM_CONSUMER;

	if (reason != RNIC_CM_CONSUMER && reason != RNIC_CM_VENDOR_OPTION)
		return EINVAL;
	return rnic_cm_reject(&c->cma->cm, c->cma->now, c->id->conn, reason,
			      cmd->private_data, cmd->private_data_len);
}

static int do_disconnect(struct command *c)
{
	return rnic_cm_disconnect(&c->cma->cm, c->cma->now, c->id->conn);
}

static int do_notify(struct command *c)
{
	if (!c->id->conn || c->req->notify.event != RNIC_EVENT_COMM_EST)
		return EINVAL;
	return rnic_cm_notify(&c->cma->cm, c->cma->now, c->id->conn);
}

static int do_join(struct command *c)
{
	const struct rdma_ucm_join_mcast *cmd = &c->req->join_mcast;
	union cma_addr addr;

	take_addr(&addr, &cmd->addr, sizeof(cmd->addr));
	if (!cmd->addr_size || cmd->addr_size != cma_addr_size(&addr) ||
	    cmd->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return EINVAL;
	return cma_join(c->cma, c->id, &addr, cmd->uid, c->rsp);
}

static int do_leave(struct command *c)
{
	return cma_leave(c->cma, c->ch, c->req->destroy_id.id, c->rsp);
}

static int do_get_event(struct command *c)
{
	struct cma_event *e = c->ch->first;

	if (!e)
		return EAGAIN;
	c->ch->first = e->next;
	if (!e->next)
		c->ch->last = &c->ch->first;
	c->ch->waiting--;
	if (e->request) {
		e->request->unseen = false;
		e->id->backlog++;
	}
	e->id->reported++;
	if (e->group)
		e->group->reported++;
	c->rsp->event = e->resp;
	c->rsp->len = sizeof(e->resp);
	free(e);
	return 0;
}

static int set_id_option(struct command *c)
{
	struct cma_id *id = c->id;
	uint32_t name = c->req->set_option.optname;
	uint32_t len = c->req->optlen;

	switch (name) {
	case RDMA_OPTION_ID_TOS:
		if (len != 1)
			return EINVAL;
		id->tos = c->req->opt[0];
		return 0;
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		if (len != 1 || c->req->opt[0] > 31 || cma_is_ud(id))
			return EINVAL;
		id->ack_timeout = c->req->opt[0];
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		if (len != sizeof(c->req->number))
			return EINVAL;
		if (id->state != CMA_IDLE &&
		    (!c->req->number || id->state == CMA_LISTEN))
			return EINVAL;
		id->reuseaddr = c->req->number != 0;
		return 0;
	case RDMA_OPTION_ID_AFONLY:
		if (len != sizeof(c->req->number) ||
		    (id->state != CMA_IDLE && id->state != CMA_BOUND))
			return EINVAL;
		id->afonly = c->req->number != 0;
		id->afonly_set = true;
		return 0;
	}
	return ENOSYS;
}

/* A path from elsewhere: the addresses of ours are known better here. */
static int set_ib_path(struct command *c)
{
	const uint32_t flags =
		IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
	uint32_t i, n = c->req->optlen / sizeof(c->req->path[0]);

	if (!n || c->req->optlen % sizeof(c->req->path[0]))
		return EINVAL;
	for (i = 0; i < n && c->req->path[i].flags != flags; i++)
		;
	if (i == n || c->id->state != CMA_ADDR_RESOLVED)
		return EINVAL;
	return do_resolve_route(c);
}

static int do_set_option(struct command *c)
{
	const struct rdma_ucm_set_option *cmd = &c->req->set_option;

	if (cmd->level == RDMA_OPTION_ID)
		return set_id_option(c);
	if (cmd->level == RDMA_OPTION_IB && cmd->optname == RDMA_OPTION_IB_PATH)
		return set_ib_path(c);
	return ENOSYS;
}

/* With the events that wait, and the requests among them. */
static void move_id(struct cma *cma, struct cma_id *id, struct cma_channel *to)
{
	struct cma_event *e = cma_take_events(id, NULL), *next;

	id->channel = to;
	for (; e; e = next) {
		next = e->next;
		e->next = NULL;
		if (e->request)
			e->request->channel = to;
		cma_queue_event(cma, id, e);
	}
}

static int do_migrate_id(struct command *c)
{
	struct cma_channel *to = c->ch;
	int err;

	if (c->req->from >= CMA_MAX_CHANNEL || !c->cma->channel[c->req->from])
		return ENOENT;
	c->ch = c->cma->channel[c->req->from];
	err = find_id(c, c->req->migrate_id.id);
	if (err)
		return err;
	if (c->ch != to)
		move_id(c->cma, c->id, to);
	c->rsp->migrate_id.events_reported = c->id->reported;
	c->rsp->len = sizeof(c->rsp->migrate_id);
	return 0;
}

#define NO_ID 0
#define ID_AT(member) offsetof(struct cma_req, member)

static const struct {
	int (*run)(struct command *c);
	uint16_t id_at; /* where the request names an id */
	bool device;	/* the id must have one */
} commands[] = {
	[RDMA_USER_CM_CMD_CREATE_ID] = {do_create_id, NO_ID, false},
	[RDMA_USER_CM_CMD_DESTROY_ID] = {do_destroy_id, ID_AT(destroy_id.id),
					 false},
	[RDMA_USER_CM_CMD_BIND] = {do_bind, ID_AT(bind.id), false},
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = {do_resolve_addr,
					   ID_AT(resolve_addr.id), false},
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = {do_resolve_route,
					    ID_AT(resolve_route.id), true},
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = {do_query_route, ID_AT(query.id),
					  false},
	[RDMA_USER_CM_CMD_QUERY] = {do_query, ID_AT(query.id), false},
	[RDMA_USER_CM_CMD_CONNECT] = {do_connect, ID_AT(connect.id), true},
	[RDMA_USER_CM_CMD_LISTEN] = {do_listen, ID_AT(listen.id), false},
	[RDMA_USER_CM_CMD_ACCEPT] = {do_accept, ID_AT(accept.id), true},
	[RDMA_USER_CM_CMD_REJECT] = {do_reject, ID_AT(reject.id), true},
	[RDMA_USER_CM_CMD_DISCONNECT] = {do_disconnect, ID_AT(disconnect.id),
					 true},
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] = {do_init_qp_attr,
					   ID_AT(init_qp_attr.id), true},
	[RDMA_USER_CM_CMD_GET_EVENT] = {do_get_event, NO_ID, false},
	[RDMA_USER_CM_CMD_SET_OPTION] = {do_set_option, ID_AT(set_option.id),
					 false},
	[RDMA_USER_CM_CMD_NOTIFY] = {do_notify, ID_AT(notify.id), false},
	[RDMA_USER_CM_CMD_JOIN_MCAST] = {do_join, ID_AT(join_mcast.id), true},
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = {do_leave, NO_ID, false},
	[RDMA_USER_CM_CMD_MIGRATE_ID] = {do_migrate_id, NO_ID, false},
};

static int run(struct command *c)
{
	uint32_t cmd = c->req->cmd, number;
	int err;

	if (cmd >= sizeof(commands) / sizeof(commands[0]) || !commands[cmd].run)
		return ENOSYS;
	if (commands[cmd].id_at != NO_ID) {
		memcpy(&number, (const char *)c->req + commands[cmd].id_at,
		       sizeof(number));
		err = find_id(c, number);
		if (err)
			return err;
		if (commands[cmd].device && !c->id->has_device)
			return EINVAL;
	}
	return commands[cmd].run(c);
}

int cma_command(struct cma *cma, uint64_t now, const struct cma_req *req,
		struct cma_rsp *rsp)
{
	struct command c = {.cma = cma, .req = req, .rsp = rsp};
	struct cma_channel *ch;
	int err = 0;

	memset(rsp, 0, sizeof(*rsp));
	cma->now = now;
	if (req->channel >= CMA_MAX_CHANNEL || !cma->channel[req->channel])
		return EBADF;
	ch = c.ch = cma->channel[req->channel];
	if (req->cmd != CMA_SYNC)
		err = run(&c);
	deliver_mads(cma);
	if (ch->waiting)
		cma->ops->ready(cma->host, ch->number);
	if (req->cmd == RDMA_USER_CM_CMD_MIGRATE_ID && !err)
		ch = cma->channel[req->from];
	rsp->empty = !ch->waiting;
	return err;
}

/* ---- channels
 * ------------------------------------------------------------------ */

int cma_open(struct cma *cma, uint32_t *channel)
{
	struct cma_channel *ch;
	uint32_t i;

	for (i = 1; i < CMA_MAX_CHANNEL && cma->channel[i]; i++)
		;
	if (i == CMA_MAX_CHANNEL)
		return ENFILE;
	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return ENOMEM;
	ch->number = i;
	ch->last = &ch->first;
	cma->channel[i] = ch;
	cma->channels++;
	*channel = i;
	return 0;
}

void cma_close(struct cma *cma, uint64_t now, uint32_t channel)
{
	struct cma_channel *ch;
	struct cma_id *id;

	if (channel >= CMA_MAX_CHANNEL || !cma->channel[channel])
		return;
	ch = cma->channel[channel];
	cma->now = now;
	/* A listener takes its requests with it: from the front each time. */
	do {
		for (id = cma->ids; id && (id->channel != ch || id->unseen);
		     id = id->next)
			;
		if (id)
			destroy_id(cma, id);
	} while (id);
	cma->channel[channel] = NULL;
	cma->channels--;
	free(ch);
	deliver_mads(cma);
}

void cma_sync(struct cma *cma)
{
	uint32_t i;

	for (i = 1; i < CMA_MAX_CHANNEL; i++)
		if (cma->channel[i] && cma->channel[i]->waiting)
			cma->ops->ready(cma->host, i);
}

uint64_t cma_tick(struct cma *cma, uint64_t now)
{
	cma->now = now;
	rnic_cm_tick(&cma->cm, now);
	deliver_mads(cma);
	return rnic_cm_tick(&cma->cm, now);
}

void cma_count(const struct cma *cma, struct cma_objects *n)
{
	const struct cma_id *id;

	n->ids = cma->live;
	n->listeners = 0;
	for (id = cma->ids; id; id = id->next)
		n->listeners += id->state == CMA_LISTEN;
	n->channels = cma->channels;
}

struct cma *cma_new(const struct rnic *rnic, uint32_t conns, uint64_t seed,
		    const struct cma_ops *ops, void *host)
{
	struct cma *cma = calloc(1, sizeof(*cma));

	if (!cma)
		return NULL;
	cma->conns = calloc(conns, sizeof(*cma->conns));
	if (!cma->conns) {
		free(cma);
		return NULL;
	}
	cma->rnic = rnic;
	cma->ops = ops;
	cma->host = host;
	cma->random = seed | 1;
	cma->last_mad = &cma->first_mad;
	rnic_cm_init(&cma->cm, cma->conns, conns, seed, &cm_ops, cma);
	return cma;
}

void cma_free(struct cma *cma)
{
	uint32_t i;

	for (i = 0; i < CMA_MAX_CHANNEL; i++)
		cma_close(cma, cma->now, i);
	free(cma->conns);
	free(cma);
}
