// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Life of a queue pair.  Its attributes: uverbs_qp_attr.c. */
#include "softnic/uverbs_cmd.h"

/* ---- create: is it possible? ----------------------------------------- */

struct qp_args {
	uint64_t user_handle;
	uint64_t type; /* enum ib_uverbs_qp_type */
	uint32_t pdn;
	uint32_t send_cqn;
	uint32_t recv_cqn;
	uint32_t srqn; /* 0: none */
	uint32_t xrcd; /* XRC target: instead of all these */
	bool sq_sig_all;
	struct rnic_qp_cap cap; /* asked for, then granted */
};

/* A target has another handle in each process. */
struct qp_name {
	uint32_t handle;
	uint32_t qpn;
};

_Static_assert((int)IB_UVERBS_QPT_XRC_INI == (int)RNIC_QPT_XRC_SEND &&
		       (int)IB_UVERBS_QPT_XRC_TGT == (int)RNIC_QPT_XRC_RECV,
	       "types are passed on as they are");
_Static_assert((int)IB_UVERBS_QPT_RC == (int)RNIC_QPT_RC &&
		       (int)IB_UVERBS_QPT_UC == (int)RNIC_QPT_UC &&
		       (int)IB_UVERBS_QPT_UD == (int)RNIC_QPT_UD &&
		       (int)IB_UVERBS_QPT_RAW_PACKET ==
			       (int)RNIC_QPT_RAW_PACKET,
	       "types are passed on as they are");

static int check_type(uint64_t type)
{
	switch (type) {
	case IB_UVERBS_QPT_RC:
	case IB_UVERBS_QPT_UC:
	case IB_UVERBS_QPT_UD:
	case IB_UVERBS_QPT_XRC_INI:
	case IB_UVERBS_QPT_XRC_TGT:
	case IB_UVERBS_QPT_RAW_PACKET:
		return 0;
	case IB_UVERBS_QPT_DRIVER:
		return EOPNOTSUPP;
	default:
		return EINVAL;
	}
}

static int check_cap(const struct rnic_qp_cap *cap)
{
	const uint32_t depth = 1u << SF_MAX_LOG_DEPTH;

	if (cap->max_send_wr > depth || cap->max_recv_wr > depth ||
	    cap->max_send_sge > SF_MAX_SEND_SGE ||
	    cap->max_recv_sge > SF_MAX_RECV_SGE ||
	    cap->max_inline_data > SF_MAX_INLINE)
		return EINVAL;
	return 0;
}

static bool is_target(const struct qp_args *args)
{
	return args->type == IB_UVERBS_QPT_XRC_TGT;
}

static bool has_rq(const struct qp_args *args)
{
	return !args->srqn && args->type != IB_UVERBS_QPT_XRC_INI &&
	       !is_target(args);
}

static int check_shape(const struct qp_args *args,
		       const struct scalefabric_create_qp_req *req)
{
	if (is_target(args))
		return req->sq_log_depth || req->sq_log_stride ||
				       req->rq_log_depth || req->rq_log_stride ?
			       EINVAL :
			       0;
	if (req->sq_log_depth > SF_MAX_LOG_DEPTH ||
	    req->sq_log_stride < SF_SLOT_LOG_MIN ||
	    req->sq_log_stride > SF_SLOT_LOG_MAX)
		return EINVAL;
	if (!has_rq(args))
		return req->rq_log_depth || req->rq_log_stride ? EINVAL : 0;
	if (req->rq_log_depth > SF_MAX_LOG_DEPTH ||
	    req->rq_log_stride < SF_RQ_LOG_MIN ||
	    req->rq_log_stride > SF_RQ_LOG_MAX)
		return EINVAL;
	return 0;
}

/* A page per QP holds both doorbells: DOORBELL_PAGE asks for no more. */
#define QP_FLAGS_SUPPORTED \
	(SCALEFABRIC_QP_DOORBELL_PAGE | SCALEFABRIC_QP_INLINE_RECV)

static int get_create_req(const struct uverbs_cmd *c,
			  const struct qp_args *args,
			  struct scalefabric_create_qp_req *req)
{
	int err;

	err = uverbs_get_uhw(c, req, sizeof(*req));
	if (err)
		return err;
	if (req->comp_mask || req->flags & ~QP_FLAGS_SUPPORTED)
		return EOPNOTSUPP;
	err = uverbs_check_mem(&req->sq);
	if (!err)
		err = uverbs_check_mem(&req->line);
	if (!err)
		err = uverbs_check_mem(&req->rq);
	return err ? err : check_shape(args, req);
}

/* ---- create: what queues of this shape hold -------------------------- */

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static struct rnic_qp_cap shape_cap(const struct scalefabric_create_qp_req *req)
{
	uint32_t slot = req->sq_log_stride ?
				sf_slot_capacity(1u << req->sq_log_stride, 0) :
				0;
	uint32_t desc = (1u << req->rq_log_stride) - sizeof(struct sf_rq_desc);
	struct rnic_qp_cap cap = {
		.max_send_wr = req->sq_log_stride ? 1u << req->sq_log_depth : 0,
		.max_send_sge =
			min_u32(slot / sizeof(struct sf_sge), SF_MAX_SEND_SGE),
		.max_inline_data = min_u32(slot, SF_MAX_INLINE),
	};

	if (req->rq_log_stride) {
		cap.max_recv_wr = 1u << req->rq_log_depth;
		cap.max_recv_sge = desc / sizeof(struct sf_sge);
	}
	return cap;
}

/* Queues that hold less than what is asked for are a contradiction. */
static int grant_cap(struct rnic_qp_cap *cap,
		     const struct scalefabric_create_qp_req *req)
{
	struct rnic_qp_cap have = shape_cap(req);

	if (!req->rq_log_stride) /* the SRQ's, whatever was asked for */
		cap->max_recv_wr = cap->max_recv_sge = 0;
	if (!req->sq_log_stride)
		cap->max_send_wr = cap->max_send_sge = cap->max_inline_data = 0;
	if (cap->max_send_wr > have.max_send_wr ||
	    cap->max_recv_wr > have.max_recv_wr ||
	    cap->max_send_sge > have.max_send_sge ||
	    cap->max_recv_sge > have.max_recv_sge ||
	    cap->max_inline_data > have.max_inline_data)
		return EINVAL;
	*cap = have;
	return 0;
}

/* ---- create ---------------------------------------------------------- */

static int put_create_resp(struct uverbs_cmd *c, const struct sfnic_rsp *rsp,
			   const struct qp_args *args)
{
	const struct rnic_qp_mem *mem = &rsp->qp.mem;
	struct scalefabric_create_qp_resp resp = {.qpn = rsp->id};

	if (!is_target(args)) {
		resp.sq = (struct scalefabric_region){mem->queues,
						      mem->queues_len, mem->sq};
		resp.line = (struct scalefabric_region){
			mem->queues, mem->queues_len, mem->line};
		resp.sq_doorbell = (struct scalefabric_region){mem->doorbells,
							       RNIC_PAGE, 0};
		resp.sq_start = mem->sq_start;
		resp.rq_start = mem->rq_start;
	}
	if (has_rq(args)) {
		resp.rq = (struct scalefabric_region){mem->queues,
						      mem->queues_len, mem->rq};
		resp.rq_doorbell = (struct scalefabric_region){
			mem->doorbells, RNIC_PAGE, sizeof(struct sf_doorbell)};
	}
	return uverbs_put_uhw(c, &resp, sizeof(resp));
}

static void fill_init(struct rnic_qp_init *init, const struct qp_args *args,
		      const struct scalefabric_create_qp_req *driver)
{
	*init = (struct rnic_qp_init){
		.type = args->type,
		.pdn = args->pdn,
		.send_cqn = args->send_cqn,
		.recv_cqn = args->recv_cqn,
		.srqn = args->srqn,
		.xrcd = args->xrcd,
		.sq_sig_all = args->sq_sig_all,
		.inline_recv = !!(driver->flags & SCALEFABRIC_QP_INLINE_RECV),
		.sq_log_depth = driver->sq_log_depth,
		.sq_log_stride = driver->sq_log_stride,
		.rq_log_depth = driver->rq_log_depth,
		.rq_log_stride = driver->rq_log_stride,
		.cap = args->cap,
		.user_handle = args->user_handle,
	};
}

/* What a QP of the type is not made of is left out, as the kernel does. */
static void leave_out(struct qp_args *args)
{
	if (is_target(args)) {
		args->pdn = args->send_cqn = args->recv_cqn = args->srqn = 0;
		args->sq_sig_all = false;
		return;
	}
	args->xrcd = 0;
	if (args->type == IB_UVERBS_QPT_XRC_INI)
		args->recv_cqn = args->srqn = 0;
}

static int create_qp(struct uverbs_cmd *c, struct qp_args *args,
		     struct qp_name *name)
{
	struct scalefabric_create_qp_req driver;
	struct sfnic_req req = {};
	struct sfnic_rsp rsp;
	int err;

	leave_out(args);
	err = check_type(args->type);
	if (!err)
		err = check_cap(&args->cap);
	if (!err)
		err = get_create_req(c, args, &driver);
	if (!err)
		err = grant_cap(&args->cap, &driver);
	if (!err)
		err = uverbs_probe(c);
	if (err)
		return err;

	fill_init(&req.qp, args, &driver);
	err = uverbs_call(c, SFNIC_CREATE_QP, &req, &rsp);
	if (err)
		return err;
	name->qpn = rsp.id;
	name->handle = rsp.qp.mem.handle;
	return put_create_resp(c, &rsp, args);
}

/* ---- create: with an indirection table ------------------------------- */

static int get_hash(const struct uverbs_cmd *c, struct rnic_hash *hash)
{
	static const uint8_t zero[6];
	struct scalefabric_create_hash_qp_req req;
	int err;

	err = uverbs_get_uhw(c, &req, sizeof(req));
	if (err)
		return err;
	if (req.comp_mask ||
	    req.rx_hash_function != SCALEFABRIC_RX_HASH_TOEPLITZ ||
	    req.rx_hash_fields & ~(uint64_t)RNIC_HASH_FIELDS)
		return EOPNOTSUPP;
	if (req.rx_key_len != RNIC_HASH_KEY ||
	    memcmp(req.reserved, zero, sizeof(zero)))
		return EINVAL;
	hash->fields = req.rx_hash_fields;
	memcpy(hash->key, req.rx_key, sizeof(hash->key));
	return 0;
}

_Static_assert(sizeof(((struct scalefabric_create_hash_qp_req *)0)->rx_key) ==
		       RNIC_HASH_KEY,
	       "the key of a Toeplitz hash");

/* It only receives, by the work queues of the table. */
static int create_hash_qp(struct uverbs_cmd *c, const struct qp_args *args,
			  uint32_t table, struct qp_name *name)
{
	struct sfnic_req req = {};
	struct sfnic_rsp rsp;
	int err;

	if (args->type != IB_UVERBS_QPT_RAW_PACKET)
		return EINVAL;
	if (args->srqn || args->recv_cqn || args->cap.max_recv_wr ||
	    args->cap.max_recv_sge)
		return EINVAL;
	if (args->send_cqn || args->cap.max_send_wr)
		return EOPNOTSUPP;
	err = get_hash(c, &req.qp.hash);
	if (!err)
		err = uverbs_probe(c);
	if (err)
		return err;
	req.qp.type = RNIC_QPT_HASH;
	req.qp.pdn = args->pdn;
	req.qp.hash.table = table;
	req.qp.user_handle = args->user_handle;
	req.qp.sq_log_stride = SF_SLOT_LOG_MIN;
	req.qp.rq_log_stride = SF_RQ_LOG_MIN;
	err = uverbs_call(c, SFNIC_CREATE_QP, &req, &rsp);
	if (!err)
		name->qpn = name->handle = rsp.id;
	return err;
}

/* ---- create: the three commands ---------------------------------------- */

static void fill_create_resp(struct ib_uverbs_create_qp_resp *resp,
			     const struct rnic_qp_cap *cap,
			     const struct qp_name *name)
{
	resp->qp_handle = name->handle;
	resp->qpn = name->qpn;
	resp->max_send_wr = cap->max_send_wr;
	resp->max_recv_wr = cap->max_recv_wr;
	resp->max_send_sge = cap->max_send_sge;
	resp->max_recv_sge = cap->max_recv_sge;
	resp->max_inline_data = cap->max_inline_data;
}

/* Members that the two write commands have in common, under one name. */
#define TAKE_CREATE_REQ(args, req)                              \
	((struct qp_args){                                      \
		.user_handle = (req).user_handle,               \
		.type = (req).qp_type,                          \
		.pdn = (req).pd_handle,                         \
		.xrcd = (req).pd_handle,                        \
		.send_cqn = (req).send_cq_handle,               \
		.recv_cqn = (req).recv_cq_handle,               \
		.srqn = (req).is_srq ? (req).srq_handle : 0,    \
		.sq_sig_all = (req).sq_sig_all,                 \
		.cap = {(req).max_send_wr, (req).max_recv_wr,   \
			(req).max_send_sge, (req).max_recv_sge, \
			(req).max_inline_data},                 \
	})

int uverbs_create_qp(struct uverbs_cmd *c)
{
	struct ib_uverbs_create_qp_resp resp = {};
	struct ib_uverbs_create_qp req;
	struct qp_args args;
	struct qp_name name;
	int err;

	err = uverbs_request(c, &req, sizeof(req));
	if (err)
		return err;
	args = TAKE_CREATE_REQ(args, req);
	err = create_qp(c, &args, &name);
	if (err)
		return err;
	fill_create_resp(&resp, &args.cap, &name);
	return uverbs_respond(c, &resp, sizeof(resp));
}

int uverbs_ex_create_qp(struct uverbs_cmd *c)
{
	struct ib_uverbs_ex_create_qp_resp resp = {};
	struct ib_uverbs_ex_create_qp req;
	struct qp_args args;
	struct qp_name name;
	int err;

	err = uverbs_request(c, &req, sizeof(req));
	if (err)
		return err;
	if (req.comp_mask & ~IB_UVERBS_CREATE_QP_SUP_COMP_MASK || req.reserved)
		return EINVAL;
	if (req.create_flags || req.source_qpn)
		return EOPNOTSUPP;
	args = TAKE_CREATE_REQ(args, req);
	if (req.comp_mask & IB_UVERBS_CREATE_QP_MASK_IND_TABLE)
		err = create_hash_qp(c, &args, req.rwq_ind_tbl_handle, &name);
	else
		err = create_qp(c, &args, &name);
	if (err)
		return err;
	fill_create_resp(&resp.base, &args.cap, &name);
	resp.response_length = uverbs_response_length(c, sizeof(resp));
	return uverbs_respond(c, &resp, sizeof(resp));
}

#define QP_CREATE_FLAGS_KNOWN                           \
	(IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK | \
	 IB_UVERBS_QP_CREATE_SCATTER_FCS |              \
	 IB_UVERBS_QP_CREATE_CVLAN_STRIPPING |          \
	 IB_UVERBS_QP_CREATE_PCI_WRITE_END_PADDING |    \
	 IB_UVERBS_QP_CREATE_SQ_SIG_ALL)

/* Objects and flags that a plain RC QP does not have, or must have. */
static int check_create_attrs(const struct uverbs_buf *a)
{
	uint64_t flags = a[UVERBS_ATTR_CREATE_QP_FLAGS].value;

	if (flags & ~(uint64_t)QP_CREATE_FLAGS_KNOWN)
		return EINVAL;
	if (flags & ~(uint64_t)IB_UVERBS_QP_CREATE_SQ_SIG_ALL)
		return EOPNOTSUPP;
	if (a[UVERBS_ATTR_CREATE_QP_SOURCE_QPN].present)
		return EOPNOTSUPP;
	return 0;
}

static int check_create_objects(const struct uverbs_buf *a, uint64_t type)
{
	bool xrcd = a[UVERBS_ATTR_CREATE_QP_XRCD_HANDLE].present;

	if (type == IB_UVERBS_QPT_XRC_TGT)
		return xrcd ? 0 : EINVAL;
	if (xrcd || !a[UVERBS_ATTR_CREATE_QP_PD_HANDLE].present)
		return EINVAL;
	if (a[UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE].present)
		return 0;
	if (!a[UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE].present)
		return EINVAL;
	return type != IB_UVERBS_QPT_XRC_INI &&
			       !a[UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE]
					.present ?
		       EINVAL :
		       0;
}

_Static_assert(sizeof(struct ib_uverbs_qp_cap) == sizeof(struct rnic_qp_cap) &&
		       offsetof(struct ib_uverbs_qp_cap, max_send_wr) ==
			       offsetof(struct rnic_qp_cap, max_send_wr) &&
		       offsetof(struct ib_uverbs_qp_cap, max_recv_wr) ==
			       offsetof(struct rnic_qp_cap, max_recv_wr) &&
		       offsetof(struct ib_uverbs_qp_cap, max_send_sge) ==
			       offsetof(struct rnic_qp_cap, max_send_sge) &&
		       offsetof(struct ib_uverbs_qp_cap, max_recv_sge) ==
			       offsetof(struct rnic_qp_cap, max_recv_sge) &&
		       offsetof(struct ib_uverbs_qp_cap, max_inline_data) ==
			       offsetof(struct rnic_qp_cap, max_inline_data),
	       "capabilities are copied as they are");

int uverbs_ioctl_create_qp(struct uverbs_cmd *c)
{
	struct uverbs_buf *a = c->attr;
	struct qp_args args = {
		.user_handle = a[UVERBS_ATTR_CREATE_QP_USER_HANDLE].value,
		.type = a[UVERBS_ATTR_CREATE_QP_TYPE].value,
		.pdn = a[UVERBS_ATTR_CREATE_QP_PD_HANDLE].value,
		.xrcd = a[UVERBS_ATTR_CREATE_QP_XRCD_HANDLE].value,
		.send_cqn = a[UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE].value,
		.recv_cqn = a[UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE].value,
		.srqn = a[UVERBS_ATTR_CREATE_QP_SRQ_HANDLE].value,
		.sq_sig_all = a[UVERBS_ATTR_CREATE_QP_FLAGS].value &
			      IB_UVERBS_QP_CREATE_SQ_SIG_ALL,
	};
	struct qp_name name;
	int err;

	err = check_create_attrs(a);
	if (!err)
		err = check_type(args.type);
	if (!err)
		err = check_create_objects(a, args.type);
	if (!err)
		err = uverbs_get(&a[UVERBS_ATTR_CREATE_QP_CAP], &args.cap,
				 sizeof(args.cap));
	if (err)
		return err;
	if (a[UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE].present)
		err = create_hash_qp(
			c, &args,
			a[UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE].value, &name);
	else
		err = create_qp(c, &args, &name);
	if (err)
		return err;
	c->result = name.handle;
	err = uverbs_put(&a[UVERBS_ATTR_CREATE_QP_RESP_CAP], &args.cap,
			 sizeof(args.cap));
	if (err)
		return err;
	return uverbs_put(&a[UVERBS_ATTR_CREATE_QP_RESP_QP_NUM], &name.qpn,
			  sizeof(name.qpn));
}

/* ---- destroy --------------------------------------------------------- */

/* A work queue is a queue pair that only receives. */
int uverbs_destroy_queues(const struct uverbs_cmd *c, uint32_t qpn, bool wq,
			  uint32_t *events)
{
	struct uverbs_events unread;
	struct sfnic_rsp rsp;
	int err;

	err = uverbs_probe(c);
	if (!err)
		err = uverbs_call_id(c, SFNIC_QUERY_QP, qpn, &rsp);
	if (err)
		return err;
	if ((rsp.query_qp.init.type == RNIC_QPT_WQ) != wq)
		return EINVAL;
	unread.user_handle = rsp.query_qp.init.user_handle;
	unread.async_fd = c->ops->async_read_fd(c->ctx);
	return uverbs_destroy(c, SFNIC_DESTROY_QP, qpn, &unread, NULL, events);
}

int uverbs_destroy_qp(struct uverbs_cmd *c)
{
	struct ib_uverbs_destroy_qp_resp resp;
	struct ib_uverbs_destroy_qp req;
	int err;

	err = uverbs_request(c, &req, sizeof(req));
	if (!err)
		err = uverbs_destroy_queues(c, req.qp_handle, false,
					    &resp.events_reported);
	return err ? err : uverbs_respond(c, &resp, sizeof(resp));
}

int uverbs_ioctl_destroy_qp(struct uverbs_cmd *c)
{
	struct ib_uverbs_destroy_qp_resp resp;
	int err;

	err = uverbs_destroy_queues(
		c, c->attr[UVERBS_ATTR_DESTROY_QP_HANDLE].value, false,
		&resp.events_reported);
	if (err)
		return err;
	return uverbs_put(&c->attr[UVERBS_ATTR_DESTROY_QP_RESP], &resp,
			  sizeof(resp));
}

/* ---- doorbells that did not take the short way ----------------------- */

int uverbs_post_send(struct uverbs_cmd *c)
{
	struct ib_uverbs_post_send_resp resp = {};
	struct ib_uverbs_post_send req;
	int err;

	err = uverbs_copy_in(&req, c->attr[UVERBS_ATTR_CORE_IN].addr,
			     sizeof(req));
	if (err)
		return err;
	/* Work requests go on the ring; this command only rings. */
	if (req.wr_count || req.sge_count)
		return EOPNOTSUPP;
	c->ops->sq_ring(req.qp_handle);
	return uverbs_respond(c, &resp, sizeof(resp));
}

int uverbs_post_recv(struct uverbs_cmd *c)
{
	struct ib_uverbs_post_recv_resp resp = {};
	struct ib_uverbs_post_recv req;
	int err;

	err = uverbs_copy_in(&req, c->attr[UVERBS_ATTR_CORE_IN].addr,
			     sizeof(req));
	if (err)
		return err;
	if (req.wr_count || req.sge_count)
		return EOPNOTSUPP;
	c->ops->rq_ring(req.qp_handle);
	return uverbs_respond(c, &resp, sizeof(resp));
}
