// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* write(2) on an event channel of rdma_cm: one command each. */
#include "softnic/ucma.h"
#include "softnic/uverbs_cmd.h"

/* A command as it lies in the program's memory, behind its header. */
union body {
	uint64_t response; /* where it is the first member */
	struct rdma_ucm_bind_ip bind_ip;
	struct rdma_ucm_resolve_ip resolve_ip;
	struct rdma_ucm_join_ip_mcast join_ip;
	struct rdma_ucm_get_event get_event;
};

#define NO_ANSWER 0xffff

struct form {
	uint16_t min; /* bytes that must be there */
	uint16_t size;
	uint16_t min_out; /* room for the answer */
	uint16_t max_out;
	uint16_t response; /* where its address stands */
	bool known;
};

#define END(type, member) \
	(offsetof(struct type, member) + sizeof(((struct type *)0)->member))
#define ASKS(type)                                                       \
	{                                                                \
		.min = sizeof(struct type), .size = sizeof(struct type), \
		.response = NO_ANSWER, .known = true                     \
	}
/* Has grown since: @last is the last member that has always been there. */
#define GREW(type, last)                                             \
	{                                                            \
		.min = END(type, last), .size = sizeof(struct type), \
		.response = NO_ANSWER, .known = true                 \
	}
#define ANSWERED(type, least, most)                                        \
	{                                                                  \
		.min = sizeof(struct type), .size = sizeof(struct type),   \
		.min_out = least, .max_out = most,                         \
		.response = offsetof(struct type, response), .known = true \
	}
#define ANSWERS(type, answer) \
	ANSWERED(type, sizeof(struct answer), sizeof(struct answer))

static const struct form forms[] = {
	[RDMA_USER_CM_CMD_CREATE_ID] =
		ANSWERS(rdma_ucm_create_id, rdma_ucm_create_id_resp),
	[RDMA_USER_CM_CMD_DESTROY_ID] =
		ANSWERS(rdma_ucm_destroy_id, rdma_ucm_destroy_id_resp),
	[RDMA_USER_CM_CMD_BIND_IP] = ASKS(rdma_ucm_bind_ip),
	[RDMA_USER_CM_CMD_RESOLVE_IP] = ASKS(rdma_ucm_resolve_ip),
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = ASKS(rdma_ucm_resolve_route),
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = ANSWERED(
		rdma_ucm_query,
		offsetof(struct rdma_ucm_query_route_resp, ibdev_index),
		sizeof(struct rdma_ucm_query_route_resp)),
	[RDMA_USER_CM_CMD_CONNECT] = GREW(rdma_ucm_connect, reserved),
	[RDMA_USER_CM_CMD_LISTEN] = ASKS(rdma_ucm_listen),
	[RDMA_USER_CM_CMD_ACCEPT] = GREW(rdma_ucm_accept, reserved),
	[RDMA_USER_CM_CMD_REJECT] = ASKS(rdma_ucm_reject),
	[RDMA_USER_CM_CMD_DISCONNECT] = ASKS(rdma_ucm_disconnect),
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] =
		ANSWERS(rdma_ucm_init_qp_attr, ib_uverbs_qp_attr),
	[RDMA_USER_CM_CMD_GET_EVENT] =
		ANSWERED(rdma_ucm_get_event,
			 offsetof(struct rdma_ucm_event_resp, reserved),
			 sizeof(struct rdma_ucm_event_resp)),
	[RDMA_USER_CM_CMD_SET_OPTION] = ASKS(rdma_ucm_set_option),
	[RDMA_USER_CM_CMD_NOTIFY] = ASKS(rdma_ucm_notify),
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] =
		ANSWERS(rdma_ucm_join_ip_mcast, rdma_ucm_create_id_resp),
	[RDMA_USER_CM_CMD_LEAVE_MCAST] =
		ANSWERS(rdma_ucm_destroy_id, rdma_ucm_destroy_id_resp),
	[RDMA_USER_CM_CMD_MIGRATE_ID] =
		ANSWERS(rdma_ucm_migrate_id, rdma_ucm_migrate_resp),
	/* The least depends on the option, below. */
	[RDMA_USER_CM_CMD_QUERY] = ANSWERED(
		rdma_ucm_query, 0, sizeof(struct rdma_ucm_query_addr_resp)),
	[RDMA_USER_CM_CMD_BIND] = ASKS(rdma_ucm_bind),
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = ASKS(rdma_ucm_resolve_addr),
	[RDMA_USER_CM_CMD_JOIN_MCAST] =
		ANSWERS(rdma_ucm_join_mcast, rdma_ucm_create_id_resp),
};

/* ---- the forms for IP become the general ones ---------------------------- */

static uint16_t ip_size(const struct sockaddr_in6 *addr)
{
	switch (addr->sin6_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	}
	return 0;
}

static int take_bind_ip(struct cma_req *req, const struct rdma_ucm_bind_ip *ip)
{
	uint16_t size = ip_size(&ip->addr);

	if (!size)
		return EINVAL;
	req->cmd = RDMA_USER_CM_CMD_BIND;
	req->bind.id = ip->id;
	req->bind.addr_size = size;
	memcpy(&req->bind.addr, &ip->addr, size);
	return 0;
}

static int take_resolve_ip(struct cma_req *req,
			   const struct rdma_ucm_resolve_ip *ip)
{
	uint16_t src = ip_size(&ip->src_addr), dst = ip_size(&ip->dst_addr);

	if ((ip->src_addr.sin6_family && !src) || !dst)
		return EINVAL;
	req->cmd = RDMA_USER_CM_CMD_RESOLVE_ADDR;
	req->resolve_addr.id = ip->id;
	req->resolve_addr.timeout_ms = ip->timeout_ms;
	req->resolve_addr.src_size = src;
	req->resolve_addr.dst_size = dst;
	memcpy(&req->resolve_addr.src_addr, &ip->src_addr, src);
	memcpy(&req->resolve_addr.dst_addr, &ip->dst_addr, dst);
	return 0;
}

static int take_join_ip(struct cma_req *req,
			const struct rdma_ucm_join_ip_mcast *ip)
{
	uint16_t size = ip_size(&ip->addr);

	if (!size)
		return EINVAL;
	req->cmd = RDMA_USER_CM_CMD_JOIN_MCAST;
	req->join_mcast.uid = ip->uid;
	req->join_mcast.id = ip->id;
	req->join_mcast.addr_size = size;
	memcpy(&req->join_mcast.addr, &ip->addr, size);
	return 0;
}

static int take_option(struct cma_req *req)
{
	uint32_t len = req->set_option.optlen;

	if (len > sizeof(req->path))
		return EINVAL;
	req->optlen = len;
	return uverbs_copy_in(req->opt, req->set_option.optval, len);
}

static int take_migrate(const struct ucma_ops *ops, struct cma_req *req)
{
	req->from = ops->channel((int)req->migrate_id.fd);
	return req->from ? 0 : ENOENT;
}

/* Reads the command at @at; where the answer goes ends up in @response. */
static int take(const struct ucma_ops *ops, struct cma_req *req, uint64_t at,
		uint32_t len, uint64_t *response)
{
	const struct form *form = &forms[req->cmd];
	union body body = {};
	void *to = &req->id;
	bool ip;
	int err;

	ip = req->cmd == RDMA_USER_CM_CMD_BIND_IP ||
	     req->cmd == RDMA_USER_CM_CMD_RESOLVE_IP ||
	     req->cmd == RDMA_USER_CM_CMD_JOIN_IP_MCAST ||
	     req->cmd == RDMA_USER_CM_CMD_GET_EVENT;
	if (ip)
		to = &body;
	if (len < form->min)
		return EINVAL;
	err = uverbs_copy_in(to, at, len < form->size ? len : form->size);
	if (err)
		return err;
	if (form->response != NO_ANSWER)
		memcpy(response, (char *)to + form->response,
		       sizeof(*response));
	switch (req->cmd) {
	case RDMA_USER_CM_CMD_BIND_IP:
		return take_bind_ip(req, &body.bind_ip);
	case RDMA_USER_CM_CMD_RESOLVE_IP:
		return take_resolve_ip(req, &body.resolve_ip);
	case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
		return take_join_ip(req, &body.join_ip);
	case RDMA_USER_CM_CMD_SET_OPTION:
		return take_option(req);
	case RDMA_USER_CM_CMD_MIGRATE_ID:
		return take_migrate(ops, req);
	}
	return 0;
}

/* ---- answers ---------------------------------------------------------------
 */

static uint32_t least_answer(const struct cma_req *req)
{
	if (req->cmd != RDMA_USER_CM_CMD_QUERY)
		return forms[req->cmd].min_out;
	switch (req->query.option) {
	case RDMA_USER_CM_QUERY_ADDR:
		return offsetof(struct rdma_ucm_query_addr_resp, ibdev_index);
	case RDMA_USER_CM_QUERY_PATH:
		return sizeof(struct rdma_ucm_query_path_resp);
	case RDMA_USER_CM_QUERY_GID:
		return offsetof(struct rdma_ucm_query_addr_resp, ibdev_index);
	}
	return 0;
}

/* A command that cannot answer must not have happened. */
static int probe(uint64_t response, uint32_t len)
{
	uint8_t byte;
	int err = 0;

	if (!len)
		return 0;
	err = uverbs_copy_in(&byte, response + len - 1, 1);
	if (!err)
		err = uverbs_copy_out(response + len - 1, &byte, 1);
	if (!err)
		err = uverbs_copy_in(&byte, response, 1);
	if (!err)
		err = uverbs_copy_out(response, &byte, 1);
	return err;
}

static int get_event(const struct ucma_ops *ops, int fd, struct cma_req *req,
		     struct cma_rsp *rsp)
{
	int err;

	do {
		err = ops->wait(fd);
		if (!err)
			err = ops->call(req, rsp);
		else
			return err;
	} while (err == EAGAIN); /* another thread was faster */
	return err;
}

/* After what may have taken the last event. */
static void become_quiet(const struct ucma_ops *ops, int fd,
			 const struct cma_req *req)
{
	switch (req->cmd) {
	case RDMA_USER_CM_CMD_GET_EVENT:
	case RDMA_USER_CM_CMD_DESTROY_ID:
	case RDMA_USER_CM_CMD_LEAVE_MCAST:
		ops->quiet(fd, req->channel);
		break;
	case RDMA_USER_CM_CMD_MIGRATE_ID:
		ops->quiet((int)req->migrate_id.fd, req->from);
		break;
	}
}

static int run(const struct ucma_ops *ops, int fd, struct cma_req *req,
	       uint64_t at, const struct rdma_ucm_cmd_hdr *hdr)
{
	uint64_t response = 0;
	struct cma_rsp rsp;
	uint32_t least, len;
	int err;

	err = take(ops, req, at, hdr->in, &response);
	if (err)
		return err;
	least = least_answer(req);
	if (hdr->out < least)
		return ENOSPC;
	len = forms[hdr->cmd].max_out < hdr->out ? forms[hdr->cmd].max_out :
						   hdr->out;
	err = probe(response, len);
	if (err)
		return err;
	if (hdr->cmd == RDMA_USER_CM_CMD_GET_EVENT)
		err = get_event(ops, fd, req, &rsp);
	else
		err = ops->call(req, &rsp);
	if (err)
		return err;
	if (rsp.empty)
		become_quiet(ops, fd, req);
	return uverbs_copy_out(response, rsp.bytes,
			       rsp.len < hdr->out ? rsp.len : hdr->out);
}

ssize_t ucma_write(const struct ucma_ops *ops, int fd, uint32_t channel,
		   const void *buf, size_t len)
{
	struct cma_req req = {.channel = channel};
	struct rdma_ucm_cmd_hdr hdr;
	int err;

	if (len < sizeof(hdr))
		return -EINVAL;
	err = uverbs_copy_in(&hdr, (uintptr_t)buf, sizeof(hdr));
	if (err)
		return -err;
	if (hdr.cmd >= sizeof(forms) / sizeof(forms[0]) ||
	    hdr.in + sizeof(hdr) > len)
		return -EINVAL;
	if (!forms[hdr.cmd].known)
		return -ENOSYS;
	req.cmd = hdr.cmd;
	err = run(ops, fd, &req, (uintptr_t)buf + sizeof(hdr), &hdr);
	return err ? -err : (ssize_t)len;
}
