/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One uverbs command on its way from a system call to the backend; shared by
 * the uverbs*.c files only.
 */
#ifndef SFNIC_UVERBS_CMD_H
#define SFNIC_UVERBS_CMD_H

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/scalefabric-abi.h>

#include "scalefabric/sf_hw.h"
#include "softnic/uverbs.h"

/*
 * A piece of the caller's memory, not trusted to exist; or up to 8 bytes that
 * came inside the command: then @addr is the address of @value.
 */
struct uverbs_buf {
	uint64_t addr;
	uint64_t value;
	uint32_t len;
	bool present;
	bool out; /* for our answer */
	bool written;
};

/* Attributes of a method have small ids, but for the two of the driver. */
#define UVERBS_CORE_ATTRS 16
enum {
	UVERBS_SLOT_UHW_IN = UVERBS_CORE_ATTRS,
	UVERBS_SLOT_UHW_OUT,
	UVERBS_SLOTS,
};

struct uverbs_cmd {
	const struct uverbs_ops *ops;
	uint32_t ctx;
	uint32_t dev;
	/* By attribute id.  A write command has CORE_IN, CORE_OUT, UHW. */
	struct uverbs_buf attr[UVERBS_SLOTS];
	/* ioctl: the caller's attributes, where answers go as well. */
	struct uverbs_buf list;
	/* New object or file descriptor, for the attribute that asks for it. */
	uint64_t result;
};

/* ---- the caller's memory: EFAULT instead of a crash (uverbs_user.c) -- */

int uverbs_copy_in(void *to, uint64_t from, size_t len);
int uverbs_copy_out(uint64_t to, const void *from, size_t len);
/*
 * Reads a struct: zeroes where the caller's is shorter, EOPNOTSUPP where it is
 * longer and says something there.
 */
int uverbs_get(const struct uverbs_buf *buf, void *to, size_t size);
/* EINVAL: some of these bytes are not zero. */
int uverbs_check_zero(uint64_t addr, size_t len);
/* The same for the driver part, which may not be shorter: EINVAL. */
int uverbs_get_uhw(const struct uverbs_cmd *c, void *to, size_t size);
/* Writes what the caller has room for, zeroes the rest of the room. */
int uverbs_put(struct uverbs_buf *buf, const void *from, size_t size);
int uverbs_put_uhw(struct uverbs_cmd *c, const void *from, size_t size);
/* Can every answer be written?  Asked before something is created. */
int uverbs_probe(const struct uverbs_cmd *c);

/* Requests and answers of write commands. */
static inline int uverbs_request(const struct uverbs_cmd *c, void *to,
				 size_t size)
{
	return uverbs_get(&c->attr[UVERBS_ATTR_CORE_IN], to, size);
}

static inline int uverbs_respond(struct uverbs_cmd *c, const void *from,
				 size_t size)
{
	return uverbs_put(&c->attr[UVERBS_ATTR_CORE_OUT], from, size);
}

/* How much of an extended response of @size bytes the caller gets. */
static inline uint32_t uverbs_response_length(const struct uverbs_cmd *c,
					      uint32_t size)
{
	uint32_t room = c->attr[UVERBS_ATTR_CORE_OUT].len;

	return room < size ? room : size;
}

/* ---- the backend ----------------------------------------------------- */

int uverbs_call(const struct uverbs_cmd *c, uint32_t op, struct sfnic_req *req,
		struct sfnic_rsp *rsp);
/* The same with a descriptor, or -1. */
int uverbs_call_fd(const struct uverbs_cmd *c, uint32_t op,
		   struct sfnic_req *req, int fd, struct sfnic_rsp *rsp);
/* Calls that take the number of an object and nothing else. */
int uverbs_call_id(const struct uverbs_cmd *c, uint32_t op, uint32_t id,
		   struct sfnic_rsp *rsp);
/* Where the unread events of an object are; a descriptor of -1: nowhere. */
struct uverbs_events {
	uint64_t user_handle;
	int comp_fd;
	int async_fd;
};
/*
 * Destroys an object.  An event was reported if the program has read it: those
 * that nobody has read yet are taken back.  @comp may be NULL.
 */
int uverbs_destroy(const struct uverbs_cmd *c, uint32_t op, uint32_t id,
		   const struct uverbs_events *events, uint32_t *comp,
		   uint32_t *async);

/*
 * A receive ring of that form instead of what was asked for: EINVAL, or how many
 * requests and scatter elements of each it holds.
 */
int uverbs_recv_ring(uint32_t log_depth, uint32_t log_stride, uint32_t *max_wr,
		     uint32_t *max_sge);
/* Driver part: queue memory that the device is to allocate. */
int uverbs_check_mem(const struct scalefabric_mem *mem);

/* ---- commands -------------------------------------------------------- */

/* Of write(2) and of the ioctl that wraps it: @number with the extended flag.
 */
int uverbs_invoke(struct uverbs_cmd *c, uint64_t number);

/* A completion vector is an interrupt; here it is any thread: take many. */
#define UVERBS_NUM_COMP_VECTORS 64

int uverbs_get_context(struct uverbs_cmd *c);
int uverbs_ioctl_get_context(struct uverbs_cmd *c);
int uverbs_ioctl_query_context(struct uverbs_cmd *c);
int uverbs_ioctl_alloc_async_fd(struct uverbs_cmd *c);
int uverbs_query_device(struct uverbs_cmd *c);
int uverbs_ex_query_device(struct uverbs_cmd *c);
int uverbs_query_port(struct uverbs_cmd *c);
int uverbs_ioctl_query_port(struct uverbs_cmd *c);
int uverbs_ioctl_query_gid_table(struct uverbs_cmd *c);
int uverbs_ioctl_query_gid_entry(struct uverbs_cmd *c);

int uverbs_alloc_pd(struct uverbs_cmd *c);
int uverbs_dealloc_pd(struct uverbs_cmd *c);
int uverbs_ioctl_destroy_pd(struct uverbs_cmd *c);
int uverbs_ioctl_query_pd(struct uverbs_cmd *c);
int uverbs_reg_mr(struct uverbs_cmd *c);
int uverbs_rereg_mr(struct uverbs_cmd *c);
int uverbs_ioctl_query_mr(struct uverbs_cmd *c);
int uverbs_ioctl_reg_dmabuf_mr(struct uverbs_cmd *c);
int uverbs_ioctl_advise_mr(struct uverbs_cmd *c);
int uverbs_ioctl_alloc_dm(struct uverbs_cmd *c);
int uverbs_ioctl_free_dm(struct uverbs_cmd *c);
int uverbs_ioctl_query_dm(struct uverbs_cmd *c);
int uverbs_ioctl_reg_dm_mr(struct uverbs_cmd *c);
int uverbs_alloc_mw(struct uverbs_cmd *c);
int uverbs_dealloc_mw(struct uverbs_cmd *c);
int uverbs_ioctl_destroy_mw(struct uverbs_cmd *c);
int uverbs_dereg_mr(struct uverbs_cmd *c);
int uverbs_ioctl_destroy_mr(struct uverbs_cmd *c);

int uverbs_create_comp_channel(struct uverbs_cmd *c);
int uverbs_create_cq(struct uverbs_cmd *c);
int uverbs_ex_create_cq(struct uverbs_cmd *c);
int uverbs_ioctl_create_cq(struct uverbs_cmd *c);
int uverbs_resize_cq(struct uverbs_cmd *c);
int uverbs_ex_modify_cq(struct uverbs_cmd *c);
int uverbs_destroy_cq(struct uverbs_cmd *c);
int uverbs_ioctl_destroy_cq(struct uverbs_cmd *c);
int uverbs_req_notify_cq(struct uverbs_cmd *c);

int uverbs_create_ah(struct uverbs_cmd *c);
int uverbs_destroy_ah(struct uverbs_cmd *c);
int uverbs_ioctl_destroy_ah(struct uverbs_cmd *c);
int uverbs_attach_mcast(struct uverbs_cmd *c);
int uverbs_detach_mcast(struct uverbs_cmd *c);

int uverbs_open_xrcd(struct uverbs_cmd *c);
int uverbs_close_xrcd(struct uverbs_cmd *c);
int uverbs_ioctl_destroy_xrcd(struct uverbs_cmd *c);
int uverbs_open_qp(struct uverbs_cmd *c);

int uverbs_create_srq(struct uverbs_cmd *c);
int uverbs_create_xsrq(struct uverbs_cmd *c);
int uverbs_ioctl_create_srq(struct uverbs_cmd *c);
int uverbs_modify_srq(struct uverbs_cmd *c);
int uverbs_query_srq(struct uverbs_cmd *c);
int uverbs_destroy_srq(struct uverbs_cmd *c);
int uverbs_ioctl_destroy_srq(struct uverbs_cmd *c);
int uverbs_post_srq_recv(struct uverbs_cmd *c);

int uverbs_create_qp(struct uverbs_cmd *c);
int uverbs_ex_create_qp(struct uverbs_cmd *c);
int uverbs_ioctl_create_qp(struct uverbs_cmd *c);
int uverbs_destroy_qp(struct uverbs_cmd *c);
int uverbs_ioctl_destroy_qp(struct uverbs_cmd *c);
int uverbs_modify_qp(struct uverbs_cmd *c);
int uverbs_ex_modify_qp(struct uverbs_cmd *c);
int uverbs_query_qp(struct uverbs_cmd *c);
int uverbs_post_send(struct uverbs_cmd *c);
int uverbs_post_recv(struct uverbs_cmd *c);

/* Destroys a queue pair or, @wq, a work queue; uverbs_qp.c. */
int uverbs_destroy_queues(const struct uverbs_cmd *c, uint32_t qpn, bool wq,
			  uint32_t *events);
int uverbs_ex_create_wq(struct uverbs_cmd *c);
int uverbs_ioctl_create_wq(struct uverbs_cmd *c);
int uverbs_ex_modify_wq(struct uverbs_cmd *c);
int uverbs_ex_destroy_wq(struct uverbs_cmd *c);
int uverbs_ioctl_destroy_wq(struct uverbs_cmd *c);
int uverbs_ex_create_wq_table(struct uverbs_cmd *c);
int uverbs_ex_destroy_wq_table(struct uverbs_cmd *c);
int uverbs_ioctl_destroy_wq_table(struct uverbs_cmd *c);

int uverbs_ex_create_flow(struct uverbs_cmd *c);
int uverbs_ex_destroy_flow(struct uverbs_cmd *c);
int uverbs_ioctl_destroy_flow(struct uverbs_cmd *c);
int uverbs_ioctl_create_counters(struct uverbs_cmd *c);
int uverbs_ioctl_read_counters(struct uverbs_cmd *c);
int uverbs_ioctl_destroy_counters(struct uverbs_cmd *c);

#endif
