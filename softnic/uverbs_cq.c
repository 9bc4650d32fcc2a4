// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Completion channels and completion queues. */
#include "softnic/uverbs_cmd.h"

int uverbs_create_comp_channel(struct uverbs_cmd *c)
{
	struct ib_uverbs_create_comp_channel_resp resp = {};
	struct ib_uverbs_create_comp_channel req;
	uint32_t channel;
	int err, fd;

	err = uverbs_request(c, &req, sizeof(req));
	if (!err)
		err = uverbs_probe(c);
	if (!err)
		err = c->ops->channel(c->ctx, &fd, &channel);
	if (err)
		return err;
	resp.fd = fd;
	return uverbs_respond(c, &resp, sizeof(resp));
}

/* ---- what destroy has to know ---------------------------------------- */

/*
 * Whose unread events to take back when a CQ goes.  The backend does not tell
 * and the command has only the handle, so the process that creates a CQ notes
 * it here.  A number names one CQ at a time, so a slot has one user at a time.
 * A CQ of another process that shares the context has no note: its unread
 * events are in a pipe of that process.
 */
static struct cq_note {
	uint64_t user_handle;
	uint32_t ctx; /* 0: none */
	uint32_t channel;
} cq_notes[RNIC_MAX_CQ];

static void note_cq(const struct uverbs_cmd *c, uint32_t cqn,
		    uint64_t user_handle, uint32_t channel)
{
	if (cqn < RNIC_MAX_CQ)
		cq_notes[cqn] = (struct cq_note){user_handle, c->ctx, channel};
}

static struct cq_note take_note(const struct uverbs_cmd *c, uint32_t cqn)
{
	struct cq_note note = {};

	if (cqn < RNIC_MAX_CQ && cq_notes[cqn].ctx == c->ctx) {
		note = cq_notes[cqn];
		cq_notes[cqn].ctx = 0;
	}
	return note;
}

/* ---- create ---------------------------------------------------------- */

struct cq_args {
	uint64_t user_handle;
	uint32_t cqe;
	uint32_t comp_vector;
	uint32_t flags;	    /* enum ib_uverbs_ex_create_cq_flags */
	int32_t channel_fd; /* negative: none */
};

#define CQ_FLAGS_KNOWN                             \
	(IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION | \
	 IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN)

static int check_cq_args(const struct cq_args *args)
{
	if (args->flags & ~CQ_FLAGS_KNOWN)
		return EINVAL;
	if (args->flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN)
		return EOPNOTSUPP;
	if (args->comp_vector >= UVERBS_NUM_COMP_VECTORS)
		return EINVAL;
	if (!args->cqe || args->cqe > 1u << SF_MAX_CQ_LOG_DEPTH)
		return EINVAL;
	return 0;
}

static int check_depth(uint32_t cqe, uint8_t log_depth)
{
	if (log_depth > SF_MAX_CQ_LOG_DEPTH || cqe > 1u << log_depth)
		return EINVAL;
	return 0;
}

static int get_create_req(const struct uverbs_cmd *c,
			  const struct cq_args *args,
			  struct scalefabric_create_cq_req *req)
{
	int err;

	err = uverbs_get_uhw(c, req, sizeof(*req));
	if (err)
		return err;
	/* The doorbell has a cell beside the control line, not a page. */
	if (req->comp_mask || req->flags & ~SCALEFABRIC_CQ_TIMESTAMP)
		return EOPNOTSUPP;
	if (req->reserved[0] || req->reserved[1] || req->reserved[2])
		return EINVAL;
	err = uverbs_check_mem(&req->ring);
	if (!err)
		err = uverbs_check_mem(&req->ctrl);
	return err ? err : check_depth(args->cqe, req->log_depth);
}

static int find_channel(const struct uverbs_cmd *c, int32_t fd,
			uint32_t *channel)
{
	*channel = fd < 0 ? 0 : c->ops->fd_channel(fd);
	return fd >= 0 && !*channel ? EINVAL : 0;
}

static int put_create_resp(struct uverbs_cmd *c, const struct sfnic_rsp *rsp)
{
	const struct rnic_cq_mem *mem = &rsp->cq.mem;
	struct scalefabric_create_cq_resp resp = {
		.ring = {mem->ring, mem->ring_len, 0},
		.ctrl = {mem->ctrl, RNIC_PAGE, 0},
		.doorbell = {mem->ctrl, RNIC_PAGE, sizeof(struct sf_cq_ctrl)},
		.start = mem->start,
		.cqn = rsp->id,
	};

	return uverbs_put_uhw(c, &resp, sizeof(resp));
}

static int create_cq(struct uverbs_cmd *c, const struct cq_args *args,
		     uint32_t *cqn, uint32_t *cqe)
{
	struct scalefabric_create_cq_req driver;
	struct sfnic_req req = {};
	struct sfnic_rsp rsp;
	int err;

	err = check_cq_args(args);
	if (!err)
		err = get_create_req(c, args, &driver);
	if (!err)
		err = find_channel(c, args->channel_fd, &req.cq.channel);
	if (!err)
		err = uverbs_probe(c);
	if (err)
		return err;

	req.cq.log_depth = driver.log_depth;
	req.cq.timestamps =
		driver.flags & SCALEFABRIC_CQ_TIMESTAMP ||
		args->flags & IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION;
	req.cq.user_handle = args->user_handle;
	err = uverbs_call(c, SFNIC_CREATE_CQ, &req, &rsp);
	if (err)
		return err;
	note_cq(c, rsp.id, args->user_handle, req.cq.channel);
	*cqn = rsp.id;
	*cqe = 1u << driver.log_depth;
	return put_create_resp(c, &rsp);
}

int uverbs_create_cq(struct uverbs_cmd *c)
{
	struct ib_uverbs_create_cq_resp resp = {};
	struct ib_uverbs_create_cq req;
	struct cq_args args = {};
	int err;

	err = uverbs_request(c, &req, sizeof(req));
	if (err)
		return err;
	args.user_handle = req.user_handle;
	args.cqe = req.cqe;
	args.comp_vector = req.comp_vector;
	args.channel_fd = req.comp_channel;
	err = create_cq(c, &args, &resp.cq_handle, &resp.cqe);
	return err ? err : uverbs_respond(c, &resp, sizeof(resp));
}

int uverbs_ex_create_cq(struct uverbs_cmd *c)
{
	struct ib_uverbs_ex_create_cq_resp resp = {};
	struct ib_uverbs_ex_create_cq req;
	struct cq_args args = {};
	int err;

	err = uverbs_request(c, &req, sizeof(req));
	if (err)
		return err;
	if (req.comp_mask || req.reserved)
		return EINVAL;
	args.user_handle = req.user_handle;
	args.cqe = req.cqe;
	args.comp_vector = req.comp_vector;
	args.channel_fd = req.comp_channel;
	args.flags = req.flags;
	err = create_cq(c, &args, &resp.base.cq_handle, &resp.base.cqe);
	if (err)
		return err;
	resp.response_length = uverbs_response_length(c, sizeof(resp));
	return uverbs_respond(c, &resp, sizeof(resp));
}

int uverbs_ioctl_create_cq(struct uverbs_cmd *c)
{
	const struct uverbs_buf *a = c->attr;
	struct cq_args args = {
		.user_handle = a[UVERBS_ATTR_CREATE_CQ_USER_HANDLE].value,
		.cqe = a[UVERBS_ATTR_CREATE_CQ_CQE].value,
		.comp_vector = a[UVERBS_ATTR_CREATE_CQ_COMP_VECTOR].value,
		.channel_fd = -1,
	};
	uint32_t cqn, cqe;
	int err;

	if (a[UVERBS_ATTR_CREATE_CQ_FLAGS].value > UINT32_MAX)
		return EINVAL;
	args.flags = a[UVERBS_ATTR_CREATE_CQ_FLAGS].value;
	if (a[UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL].present)
		args.channel_fd = a[UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL].value;
	err = create_cq(c, &args, &cqn, &cqe);
	if (err)
		return err;
	c->result = cqn;
	return uverbs_put(&c->attr[UVERBS_ATTR_CREATE_CQ_RESP_CQE], &cqe,
			  sizeof(cqe));
}

/* ---- resize ---------------------------------------------------------- */

static int get_resize_req(const struct uverbs_cmd *c, uint32_t cqe,
			  struct scalefabric_resize_cq_req *req)
{
	size_t i;
	int err;

	err = uverbs_get_uhw(c, req, sizeof(*req));
	if (err)
		return err;
	if (req->comp_mask)
		return EOPNOTSUPP;
	for (i = 0; i < sizeof(req->reserved); i++)
		if (req->reserved[i])
			return EINVAL;
	err = uverbs_check_mem(&req->ring);
	return err ? err : check_depth(cqe, req->log_depth);
}

int uverbs_resize_cq(struct uverbs_cmd *c)
{
	struct scalefabric_resize_cq_resp driver_resp = {};
	struct scalefabric_resize_cq_req driver;
	struct ib_uverbs_resize_cq_resp resp = {};
	struct ib_uverbs_resize_cq cmd;
	struct sfnic_req req = {};
	struct sfnic_rsp rsp;
	int err;

	err = uverbs_request(c, &cmd, sizeof(cmd));
	if (!err && !cmd.cqe)
		err = EINVAL;
	if (!err)
		err = get_resize_req(c, cmd.cqe, &driver);
	if (!err)
		err = uverbs_probe(c);
	if (err)
		return err;

	req.resize_cq.cqn = cmd.cq_handle;
	req.resize_cq.log_depth = driver.log_depth;
	err = uverbs_call(c, SFNIC_RESIZE_CQ, &req, &rsp);
	if (err)
		return err;
	driver_resp.ring.mmap_key = rsp.cq.mem.ring;
	driver_resp.ring.length = rsp.cq.mem.ring_len;
	resp.cqe = 1u << driver.log_depth;
	err = uverbs_put_uhw(c, &driver_resp, sizeof(driver_resp));
	return err ? err : uverbs_respond(c, &resp, sizeof(resp));
}

/* ---- moderation ------------------------------------------------------ */

#define CQ_MODERATE (1u << 0) /* of enum ibv_cq_attr_mask */

int uverbs_ex_modify_cq(struct uverbs_cmd *c)
{
	struct ib_uverbs_ex_modify_cq cmd;
	struct sfnic_req req = {};
	struct sfnic_rsp rsp;
	int err;

	err = uverbs_request(c, &cmd, sizeof(cmd));
	if (err)
		return err;
	if (!cmd.attr_mask || cmd.reserved)
		return EINVAL;
	if (cmd.attr_mask & ~CQ_MODERATE)
		return EOPNOTSUPP;
	req.moderate_cq.cqn = cmd.cq_handle;
	req.moderate_cq.count = cmd.attr.cq_count;
	req.moderate_cq.period = cmd.attr.cq_period;
	return uverbs_call(c, SFNIC_MODERATE_CQ, &req, &rsp);
}

/* ---- destroy, arm ---------------------------------------------------- */

static int destroy_cq(const struct uverbs_cmd *c, uint32_t cqn,
		      struct ib_uverbs_destroy_cq_resp *resp)
{
	struct uverbs_events unread = {.comp_fd = -1, .async_fd = -1};
	struct cq_note note;
	int err;

	err = uverbs_probe(c);
	if (err)
		return err;
	/* Now: once it is destroyed, the number may be another CQ's. */
	note = take_note(c, cqn);
	if (note.ctx) {
		unread.user_handle = note.user_handle;
		unread.async_fd = c->ops->async_read_fd(c->ctx);
		if (note.channel)
			unread.comp_fd = c->ops->channel_fd(note.channel);
	}
	err = uverbs_destroy(c, SFNIC_DESTROY_CQ, cqn, &unread,
			     &resp->comp_events_reported,
			     &resp->async_events_reported);
	if (err && note.ctx)
		cq_notes[cqn] = note;
	return err;
}

int uverbs_destroy_cq(struct uverbs_cmd *c)
{
	struct ib_uverbs_destroy_cq_resp resp;
	struct ib_uverbs_destroy_cq req;
	int err;

	err = uverbs_request(c, &req, sizeof(req));
	if (!err)
		err = destroy_cq(c, req.cq_handle, &resp);
	return err ? err : uverbs_respond(c, &resp, sizeof(resp));
}

int uverbs_ioctl_destroy_cq(struct uverbs_cmd *c)
{
	struct ib_uverbs_destroy_cq_resp resp;
	int err;

	err = destroy_cq(c, c->attr[UVERBS_ATTR_DESTROY_CQ_HANDLE].value,
			 &resp);
	if (err)
		return err;
	return uverbs_put(&c->attr[UVERBS_ATTR_DESTROY_CQ_RESP], &resp,
			  sizeof(resp));
}

int uverbs_req_notify_cq(struct uverbs_cmd *c)
{
	struct ib_uverbs_req_notify_cq req;
	int err;

	err = uverbs_request(c, &req, sizeof(req));
	if (!err)
		c->ops->cq_arm(req.cq_handle);
	return err;
}
