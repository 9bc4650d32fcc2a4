// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * write(2) on a command fd, and the table of write commands, which
 * uverbs_ioctl.c reaches by its INVOKE_WRITE method.
 */
#include "softnic/uverbs_cmd.h"

/* ---- doorbells that need a notify: the hot path ---------------------- */

/* POST_SEND, POST_RECV and POST_SRQ_RECV, up to their work requests. */
struct post_cmd {
	uint64_t header;
	uint64_t response;
	uint32_t qpn;
	uint32_t wr_count;
	uint32_t sge_count;
	uint32_t wqe_size;
};

struct arm_cmd {
	uint64_t header;
	uint32_t cqn;
	uint32_t solicited_only;
};

_Static_assert(sizeof(struct post_cmd) ==
		       sizeof(struct ib_uverbs_cmd_hdr) +
			       sizeof(struct ib_uverbs_post_send),
	       "the fixed part of POST_SEND");
_Static_assert(sizeof(struct arm_cmd) ==
		       sizeof(struct ib_uverbs_cmd_hdr) +
			       sizeof(struct ib_uverbs_req_notify_cq),
	       "REQ_NOTIFY_CQ");

/* struct ib_uverbs_cmd_hdr as one number, without its out_words. */
#define HEADER_MASK 0x0000ffffffffffffull
#define HEADER(command, size) ((uint64_t)(command) | (uint64_t)(size) / 4 << 32)

/* A load of its own: copying the whole struct takes longer than the rest. */
static inline uint32_t load32(const void *buf, size_t offset)
{
	uint32_t value;

	memcpy(&value, (const char *)buf + offset, sizeof(value));
	return value;
}

static inline uint64_t load_header(const void *buf)
{
	uint64_t value;

	memcpy(&value, buf, sizeof(value));
	return value & HEADER_MASK;
}

#define FIELD(buf, type, member) load32(buf, offsetof(struct type, member))

/*
 * Nothing but this reads the caller's memory directly: a bad pointer of just
 * the right length ends in SIGSEGV, not EFAULT.  A notify has no work request
 * that could be bad, so there is nothing to answer.
 */
static inline bool notify(const struct uverbs_ops *ops, const void *buf,
			  size_t len)
{
	void (*ring)(uint32_t number);

	if (len == sizeof(struct post_cmd)) {
		switch (load_header(buf)) {
		case HEADER(IB_USER_VERBS_CMD_POST_SEND,
			    sizeof(struct post_cmd)):
			ring = ops->sq_ring;
			break;
		case HEADER(IB_USER_VERBS_CMD_POST_RECV,
			    sizeof(struct post_cmd)):
			ring = ops->rq_ring;
			break;
		case HEADER(IB_USER_VERBS_CMD_POST_SRQ_RECV,
			    sizeof(struct post_cmd)):
			ring = ops->srq_ring;
			break;
		default:
			return false;
		}
		if (FIELD(buf, post_cmd, wr_count))
			return false;
		ring(FIELD(buf, post_cmd, qpn));
		return true;
	}
	if (len == sizeof(struct arm_cmd) &&
	    load_header(buf) == HEADER(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ,
				       sizeof(struct arm_cmd))) {
		ops->cq_arm(FIELD(buf, arm_cmd, cqn));
		return true;
	}
	return false;
}

/* ---- the commands ---------------------------------------------------- */

struct write_method {
	int (*call)(struct uverbs_cmd *c);
	uint16_t req; /* bytes that must be there */
	uint16_t resp;
	bool driver; /* has a driver part */
};

#define REQ(fn, type)                                  \
	{                                              \
		.call = fn, .req = sizeof(struct type) \
	}
#define REQ_RESP(fn, type)                              \
	{                                               \
		.call = fn, .req = sizeof(struct type), \
		.resp = sizeof(struct type##_resp),     \
	}
#define DRIVER(fn, type)                                            \
	{                                                           \
		.call = fn, .req = sizeof(struct type),             \
		.resp = sizeof(struct type##_resp), .driver = true, \
	}
#define END(type, member) \
	(offsetof(struct type, member) + sizeof(((struct type *)0)->member))
#define EXTENDED(fn, type, last)                                           \
	{                                                                  \
		.call = fn, .req = END(type, last),                        \
		.resp = END(type##_resp, response_length), .driver = true, \
	}

/* A hole is a command that the device does not do: EOPNOTSUPP. */
static const struct write_method write_methods[IB_USER_VERBS_CMD_OPEN_QP +
					       1] = {
	[IB_USER_VERBS_CMD_GET_CONTEXT] =
		DRIVER(uverbs_get_context, ib_uverbs_get_context),
	[IB_USER_VERBS_CMD_QUERY_DEVICE] =
		DRIVER(uverbs_query_device, ib_uverbs_query_device),
	[IB_USER_VERBS_CMD_QUERY_PORT] =
		DRIVER(uverbs_query_port, ib_uverbs_query_port),
	[IB_USER_VERBS_CMD_ALLOC_PD] =
		DRIVER(uverbs_alloc_pd, ib_uverbs_alloc_pd),
	[IB_USER_VERBS_CMD_DEALLOC_PD] =
		REQ(uverbs_dealloc_pd, ib_uverbs_dealloc_pd),
	[IB_USER_VERBS_CMD_REG_MR] = DRIVER(uverbs_reg_mr, ib_uverbs_reg_mr),
	[IB_USER_VERBS_CMD_REREG_MR] =
		DRIVER(uverbs_rereg_mr, ib_uverbs_rereg_mr),
	[IB_USER_VERBS_CMD_ALLOC_MW] =
		DRIVER(uverbs_alloc_mw, ib_uverbs_alloc_mw),
	[IB_USER_VERBS_CMD_DEALLOC_MW] =
		REQ(uverbs_dealloc_mw, ib_uverbs_dealloc_mw),
	[IB_USER_VERBS_CMD_DEREG_MR] = REQ(uverbs_dereg_mr, ib_uverbs_dereg_mr),
	[IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL] = REQ_RESP(
		uverbs_create_comp_channel, ib_uverbs_create_comp_channel),
	[IB_USER_VERBS_CMD_CREATE_CQ] =
		DRIVER(uverbs_create_cq, ib_uverbs_create_cq),
	[IB_USER_VERBS_CMD_RESIZE_CQ] =
		DRIVER(uverbs_resize_cq, ib_uverbs_resize_cq),
	[IB_USER_VERBS_CMD_DESTROY_CQ] =
		REQ_RESP(uverbs_destroy_cq, ib_uverbs_destroy_cq),
	[IB_USER_VERBS_CMD_REQ_NOTIFY_CQ] =
		REQ(uverbs_req_notify_cq, ib_uverbs_req_notify_cq),
	[IB_USER_VERBS_CMD_CREATE_AH] =
		DRIVER(uverbs_create_ah, ib_uverbs_create_ah),
	[IB_USER_VERBS_CMD_DESTROY_AH] =
		REQ(uverbs_destroy_ah, ib_uverbs_destroy_ah),
	[IB_USER_VERBS_CMD_ATTACH_MCAST] =
		REQ(uverbs_attach_mcast, ib_uverbs_attach_mcast),
	[IB_USER_VERBS_CMD_DETACH_MCAST] =
		REQ(uverbs_detach_mcast, ib_uverbs_detach_mcast),
	[IB_USER_VERBS_CMD_CREATE_SRQ] =
		DRIVER(uverbs_create_srq, ib_uverbs_create_srq),
	[IB_USER_VERBS_CMD_CREATE_XSRQ] =
		{.call = uverbs_create_xsrq,
		 .req = sizeof(struct ib_uverbs_create_xsrq),
		 .resp = sizeof(struct ib_uverbs_create_srq_resp),
		 .driver = true},
	[IB_USER_VERBS_CMD_MODIFY_SRQ] =
		{.call = uverbs_modify_srq,
		 .req = sizeof(struct ib_uverbs_modify_srq),
		 .driver = true},
	[IB_USER_VERBS_CMD_QUERY_SRQ] =
		DRIVER(uverbs_query_srq, ib_uverbs_query_srq),
	[IB_USER_VERBS_CMD_DESTROY_SRQ] =
		REQ_RESP(uverbs_destroy_srq, ib_uverbs_destroy_srq),
	[IB_USER_VERBS_CMD_POST_SRQ_RECV] =
		REQ_RESP(uverbs_post_srq_recv, ib_uverbs_post_srq_recv),
	[IB_USER_VERBS_CMD_OPEN_XRCD] =
		DRIVER(uverbs_open_xrcd, ib_uverbs_open_xrcd),
	[IB_USER_VERBS_CMD_CLOSE_XRCD] =
		REQ(uverbs_close_xrcd, ib_uverbs_close_xrcd),
	[IB_USER_VERBS_CMD_OPEN_QP] = {.call = uverbs_open_qp,
				       .req = sizeof(struct ib_uverbs_open_qp),
				       .resp = sizeof(
					       struct ib_uverbs_create_qp_resp),
				       .driver = true},
	[IB_USER_VERBS_CMD_CREATE_QP] =
		DRIVER(uverbs_create_qp, ib_uverbs_create_qp),
	[IB_USER_VERBS_CMD_QUERY_QP] =
		DRIVER(uverbs_query_qp, ib_uverbs_query_qp),
	[IB_USER_VERBS_CMD_MODIFY_QP] =
		REQ(uverbs_modify_qp, ib_uverbs_modify_qp),
	[IB_USER_VERBS_CMD_DESTROY_QP] =
		REQ_RESP(uverbs_destroy_qp, ib_uverbs_destroy_qp),
	[IB_USER_VERBS_CMD_POST_SEND] =
		REQ_RESP(uverbs_post_send, ib_uverbs_post_send),
	[IB_USER_VERBS_CMD_POST_RECV] =
		REQ_RESP(uverbs_post_recv, ib_uverbs_post_recv),
};

static const struct write_method
	extended_methods[IB_USER_VERBS_EX_CMD_MODIFY_CQ + 1] = {
		[IB_USER_VERBS_EX_CMD_QUERY_DEVICE] =
			EXTENDED(uverbs_ex_query_device,
				 ib_uverbs_ex_query_device, reserved),
		[IB_USER_VERBS_EX_CMD_CREATE_CQ] = EXTENDED(
			uverbs_ex_create_cq, ib_uverbs_ex_create_cq, reserved),
		[IB_USER_VERBS_EX_CMD_CREATE_QP] = EXTENDED(
			uverbs_ex_create_qp, ib_uverbs_ex_create_qp, comp_mask),
		[IB_USER_VERBS_EX_CMD_MODIFY_QP] = EXTENDED(
			uverbs_ex_modify_qp, ib_uverbs_ex_modify_qp, base),
		/* With specs behind the request, and a fixed response. */
		[IB_USER_VERBS_EX_CMD_CREATE_FLOW] =
			DRIVER(uverbs_ex_create_flow, ib_uverbs_create_flow),
		[IB_USER_VERBS_EX_CMD_DESTROY_FLOW] =
			REQ(uverbs_ex_destroy_flow, ib_uverbs_destroy_flow),
		[IB_USER_VERBS_EX_CMD_CREATE_WQ] =
			EXTENDED(uverbs_ex_create_wq, ib_uverbs_ex_create_wq,
				 max_sge),
		[IB_USER_VERBS_EX_CMD_MODIFY_CQ] =
			REQ(uverbs_ex_modify_cq, ib_uverbs_ex_modify_cq),
		[IB_USER_VERBS_EX_CMD_MODIFY_WQ] =
			REQ(uverbs_ex_modify_wq, ib_uverbs_ex_modify_wq),
		[IB_USER_VERBS_EX_CMD_DESTROY_WQ] =
			EXTENDED(uverbs_ex_destroy_wq, ib_uverbs_ex_destroy_wq,
				 wq_handle),
		[IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL] = EXTENDED(
			uverbs_ex_create_wq_table,
			ib_uverbs_ex_create_rwq_ind_table, log_ind_tbl_size),
		[IB_USER_VERBS_EX_CMD_DESTROY_RWQ_IND_TBL] =
			REQ(uverbs_ex_destroy_wq_table,
			    ib_uverbs_ex_destroy_rwq_ind_table),
};

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* The number is one that this ABI knows, or NULL. */
static const struct write_method *find_method(uint64_t number)
{
	uint64_t command = number & IB_USER_VERBS_CMD_COMMAND_MASK;

	if (number & ~(uint64_t)(IB_USER_VERBS_CMD_COMMAND_MASK |
				 IB_USER_VERBS_CMD_FLAG_EXTENDED))
		return NULL;
	if (number & IB_USER_VERBS_CMD_FLAG_EXTENDED)
		return command < ARRAY_LEN(extended_methods) ?
			       &extended_methods[command] :
			       NULL;
	return command < ARRAY_LEN(write_methods) ? &write_methods[command] :
						    NULL;
}

int uverbs_invoke(struct uverbs_cmd *c, uint64_t number)
{
	const struct write_method *m = find_method(number);

	if (!m)
		return EINVAL;
	if (!m->call)
		return EOPNOTSUPP;
	/* libibverbs asks without buffers to learn whether this path exists. */
	if (c->attr[UVERBS_ATTR_CORE_IN].len < m->req ||
	    c->attr[UVERBS_ATTR_CORE_OUT].len < m->resp)
		return ENOSPC;
	return m->call(c);
}

/* ---- write(2) -------------------------------------------------------- */

static void set_in(struct uverbs_cmd *c, int slot, uint64_t addr, uint32_t len)
{
	if (len)
		c->attr[slot] = (struct uverbs_buf){
			.addr = addr, .len = len, .present = true};
}

static void set_out(struct uverbs_cmd *c, int slot, uint64_t addr, uint32_t len)
{
	if (len)
		c->attr[slot] = (struct uverbs_buf){
			.addr = addr, .len = len, .present = true, .out = true};
}

static int write_legacy(struct uverbs_cmd *c, const struct write_method *m,
			const struct ib_uverbs_cmd_hdr *hdr, uint64_t buf,
			size_t len)
{
	uint32_t in = len - sizeof(*hdr), out = hdr->out_words * 4;
	uint32_t core_in = in, core_out = out;
	uint64_t body = buf + sizeof(*hdr), response = 0;
	int err;

	if (hdr->in_words * 4u != len)
		return EINVAL;
	if (in < m->req || out < m->resp)
		return ENOSPC;
	if (m->driver) {
		core_in = m->req;
		core_out = m->resp;
	}
	if (m->resp) {
		/* Requests that have a response begin with its address. */
		err = uverbs_copy_in(&response, body, sizeof(response));
		if (err)
			return err;
		set_out(c, UVERBS_ATTR_CORE_OUT, response, core_out);
		set_out(c, UVERBS_SLOT_UHW_OUT, response + core_out,
			out - core_out);
	}
	set_in(c, UVERBS_ATTR_CORE_IN, body, core_in);
	set_in(c, UVERBS_SLOT_UHW_IN, body + core_in, in - core_in);
	return m->call(c);
}

static int check_extended(const struct write_method *m,
			  const struct ib_uverbs_cmd_hdr *hdr,
			  const struct ib_uverbs_ex_cmd_hdr *ex, size_t len)
{
	if ((hdr->in_words + ex->provider_in_words) * 8u != len)
		return EINVAL;
	if (hdr->in_words * 8u < m->req)
		return ENOSPC;
	if (ex->cmd_hdr_reserved)
		return EINVAL;
	/* Room for an answer and no address, or an address and no room. */
	if (!ex->response != !(hdr->out_words + ex->provider_out_words))
		return EINVAL;
	if (hdr->out_words * 8u < m->resp)
		return ENOSPC;
	return 0;
}

static int write_extended(struct uverbs_cmd *c, const struct write_method *m,
			  const struct ib_uverbs_cmd_hdr *hdr, uint64_t buf,
			  size_t len)
{
	struct ib_uverbs_ex_cmd_hdr ex;
	uint64_t body = buf + sizeof(*hdr) + sizeof(ex);
	uint32_t core_in = hdr->in_words * 8u, core_out = hdr->out_words * 8u;
	int err;

	if (len < sizeof(*hdr) + sizeof(ex))
		return EINVAL;
	err = uverbs_copy_in(&ex, buf + sizeof(*hdr), sizeof(ex));
	if (!err)
		err = check_extended(m, hdr, &ex,
				     len - sizeof(*hdr) - sizeof(ex));
	if (err)
		return err;
	set_in(c, UVERBS_ATTR_CORE_IN, body, core_in);
	set_in(c, UVERBS_SLOT_UHW_IN, body + core_in,
	       ex.provider_in_words * 8u);
	set_out(c, UVERBS_ATTR_CORE_OUT, ex.response, core_out);
	set_out(c, UVERBS_SLOT_UHW_OUT, ex.response + core_out,
		ex.provider_out_words * 8u);
	return m->call(c);
}

static int write_command(struct uverbs_cmd *c, uint64_t buf, size_t len)
{
	const struct write_method *m;
	struct ib_uverbs_cmd_hdr hdr;
	int err;

	if (len < sizeof(hdr))
		return EINVAL;
	err = uverbs_copy_in(&hdr, buf, sizeof(hdr));
	if (err)
		return err;
	m = find_method(hdr.command);
	if (!m)
		return EINVAL;
	if (!m->call)
		return EOPNOTSUPP;
	if (hdr.command & IB_USER_VERBS_CMD_FLAG_EXTENDED)
		return write_extended(c, m, &hdr, buf, len);
	return write_legacy(c, m, &hdr, buf, len);
}

/* Apart, so that the hot path has a small frame. */
static __attribute__((noinline)) ssize_t
write_slow(const struct uverbs_ops *ops, uint32_t ctx, uint32_t dev,
	   const void *buf, size_t len)
{
	struct uverbs_cmd c = {.ops = ops, .ctx = ctx, .dev = dev};
	int err = write_command(&c, (uintptr_t)buf, len);

	return err ? -err : (ssize_t)len;
}

ssize_t uverbs_write(const struct uverbs_ops *ops, uint32_t ctx, uint32_t dev,
		     const void *buf, size_t len)
{
	if (notify(ops, buf, len))
		return len;
	return write_slow(ops, ctx, dev, buf, len);
}
