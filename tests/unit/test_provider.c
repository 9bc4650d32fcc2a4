// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The provider against a kernel and a device made of a few lines: this file
 * defines the ibv_cmd_ functions that the provider calls, serves queue memory
 * out of a memory file, and plays the device by writing lines and CQEs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "compat.h"
#include "scalefabric.h"

/* ------------------------------------------------------------------------
 * Kernel
 */

#define ARENA_SIZE (8U << 20)
#define FIRST_LAP 5 /* queues start at this lap, to catch "starts at 0" */

static struct {
	const struct verbs_device_ops *driver;
	int fd;
	uint8_t *arena;
	size_t used;
	uint32_t handle;
	uint32_t qpn;
	uint8_t notify;		/* doorbell mode of the next context */
	bool impossible_region; /* the next doorbell lies outside the mapping */
	int fail;		/* errno of the next command */
	int destroyed_qps;
	int destroyed_srqs;
	uint64_t srq_head;
	uint32_t clock;
	int destroyed_cqs;
	int created_qps;
	int notify_cq_calls;
	int writes;
	struct sf_notify last_write;
	size_t last_write_len;
	pthread_spinlock_t *lock_that_must_be_free;
} kernel;

static int take_failure(void)
{
	int err = kernel.fail;

	kernel.fail = 0;
	return err;
}

static struct scalefabric_region region(size_t size)
{
	struct scalefabric_region r = {
		.mmap_key = 0,
		.length = ARENA_SIZE,
		.offset = kernel.used,
	};

	kernel.used += (size + 63) & ~(size_t)63;
	assert_true(kernel.used <= ARENA_SIZE);
	return r;
}

static struct scalefabric_region doorbell(void)
{
	struct scalefabric_region r = region(sizeof(struct sf_doorbell));

	if (kernel.impossible_region) {
		kernel.impossible_region = false;
		r.offset = ARENA_SIZE - 32;
	}
	return r;
}

void verbs_register_driver_34(const struct verbs_device_ops *ops)
{
	kernel.driver = ops;
}

int ibv_cmd_get_context(struct verbs_context *context,
			struct ibv_get_context *cmd, size_t cmd_size,
			struct ib_uverbs_get_context_resp *resp,
			size_t resp_size)
{
	struct sf_get_context_resp *r = (void *)resp;

	(void)context;
	(void)cmd;
	assert_int_equal(cmd_size, sizeof(struct sf_get_context));
	assert_int_equal(resp_size, sizeof(*r));
	r->drv_payload.hw_version = SF_HW_VERSION;
	r->drv_payload.sq_doorbell = kernel.notify;
	r->drv_payload.rq_doorbell = kernel.notify;
	r->drv_payload.srq_doorbell = kernel.notify;
	r->drv_payload.cq_doorbell = kernel.notify;
	r->drv_payload.max_send_sge = SF_MAX_SEND_SGE;
	r->drv_payload.max_inline = SF_MAX_INLINE;
	r->drv_payload.max_log_depth = 10;
	r->drv_payload.max_cq_log_depth = 12;
	r->drv_payload.clock = kernel.clock;
	return take_failure();
}

int ibv_cmd_alloc_pd(struct ibv_context *context, struct ibv_pd *pd,
		     struct ibv_alloc_pd *cmd, size_t cmd_size,
		     struct ib_uverbs_alloc_pd_resp *resp, size_t resp_size)
{
	(void)cmd;
	(void)cmd_size;
	(void)resp;
	assert_int_equal(resp_size, 4 + 8);
	pd->context = context;
	return take_failure();
}

int ibv_cmd_dealloc_pd(struct ibv_pd *pd)
{
	(void)pd;
	return take_failure();
}

int ibv_cmd_create_cq_ex(struct ibv_context *context,
			 const struct ibv_cq_init_attr_ex *attr,
			 struct verbs_cq *cq, struct ibv_create_cq_ex *cmd,
			 size_t cmd_size,
			 struct ib_uverbs_ex_create_cq_resp *resp,
			 size_t resp_size, uint32_t cmd_flags)
{
	struct scalefabric_create_cq_req *req =
		&((struct sf_create_cq *)cmd)->drv_payload;
	struct scalefabric_create_cq_resp *r =
		&((struct sf_create_cq_resp *)resp)->drv_payload;

	(void)cmd_size;
	(void)resp_size;
	(void)cmd_flags;
	assert_int_equal(attr->cqe, 1U << req->log_depth);
	assert_int_equal(req->ring.kind, SCALEFABRIC_MEM_DRIVER);
	assert_int_equal(req->ring.fd, -1);
	cq->cq.context = context;
	cq->cq.handle = kernel.handle++;
	r->ring = region(sizeof(struct sf_cqe) << req->log_depth);
	r->ctrl = region(sizeof(struct sf_cq_ctrl));
	r->doorbell = doorbell();
	r->start = (uint64_t)FIRST_LAP << req->log_depth;
	return take_failure();
}

int ibv_cmd_destroy_cq(struct ibv_cq *cq)
{
	(void)cq;
	kernel.destroyed_cqs++;
	return take_failure();
}

int ibv_cmd_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	(void)cq;
	(void)solicited_only;
	kernel.notify_cq_calls++;
	return 0;
}

int ibv_cmd_create_qp_ex(struct ibv_context *context, struct verbs_qp *qp,
			 struct ibv_qp_init_attr_ex *attr,
			 struct ibv_create_qp *cmd, size_t cmd_size,
			 struct ib_uverbs_create_qp_resp *resp,
			 size_t resp_size)
{
	struct scalefabric_create_qp_req *req =
		&((struct sf_create_qp *)cmd)->drv_payload;
	struct scalefabric_create_qp_resp *r =
		&((struct sf_create_qp_resp *)resp)->drv_payload;
	bool has_rq;

	(void)cmd_size;
	(void)resp_size;
	kernel.created_qps++;
	if (attr->qp_type == IBV_QPT_XRC_RECV) {
		assert_int_equal(req->sq_log_stride | req->rq_log_stride, 0);
		assert_int_equal(attr->comp_mask, IBV_QP_INIT_ATTR_XRCD);
		qp->qp.qp_type = IBV_QPT_XRC_RECV;
		qp->qp.context = context;
		qp->qp.qp_num = kernel.qpn++;
		return take_failure();
	}
	has_rq = !attr->srq && attr->qp_type != IBV_QPT_XRC_SEND;
	assert_int_equal(req->flags,
			 !has_rq || attr->qp_type == IBV_QPT_UD ||
					 attr->qp_type == IBV_QPT_RAW_PACKET ?
				 0 :
				 SCALEFABRIC_QP_INLINE_RECV);
	assert_int_equal(!!req->rq_log_stride, has_rq);
	assert_int_equal(attr->cap.max_send_wr, 1U << req->sq_log_depth);
	qp->qp.context = context;
	qp->qp.pd = attr->pd;
	qp->qp.send_cq = attr->send_cq;
	qp->qp.recv_cq = attr->recv_cq;
	qp->qp.qp_type = attr->qp_type;
	qp->qp.state = IBV_QPS_RESET;
	qp->qp.handle = kernel.handle++;
	qp->qp.qp_num = kernel.qpn++;
	qp->comp_mask = 0;
	r->sq = region((size_t)1 << (req->sq_log_depth + req->sq_log_stride));
	r->line = region(sizeof(struct sf_send_line));
	r->sq_doorbell = region(sizeof(struct sf_doorbell));
	if (has_rq) {
		r->rq = region((size_t)1
			       << (req->rq_log_depth + req->rq_log_stride));
		r->rq_doorbell = doorbell();
	}
	r->sq_start = (uint64_t)FIRST_LAP << req->sq_log_depth;
	r->rq_start = (1ULL << 32) - 3; /* the cookie wraps soon */
	*(uint64_t *)(kernel.arena + r->line.offset) = r->sq_start;
	return take_failure();
}

int ibv_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr,
		      int attr_mask, struct ibv_modify_qp *cmd, size_t cmd_size)
{
	struct sf_sq *sq = &to_sf_qp(qp)->sq;
	int err = take_failure();
	uint64_t depth = 1ULL << sq->log_depth;

	(void)cmd;
	(void)cmd_size;
	if (err)
		return err;
	if (attr_mask & IBV_QP_STATE)
		qp->state = attr->qp_state;
	if (qp->state == IBV_QPS_RESET)
		sq->line->word = (sq->head + depth - 1) & ~(depth - 1);
	return 0;
}

int ibv_cmd_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		     struct ibv_qp_init_attr *init_attr,
		     struct ibv_query_qp *cmd, size_t cmd_size)
{
	(void)attr_mask;
	(void)cmd;
	(void)cmd_size;
	attr->qp_state = qp->state;
	init_attr->qp_type = qp->qp_type;
	return take_failure();
}

int ibv_cmd_destroy_qp(struct ibv_qp *qp)
{
	int err = take_failure();

	(void)qp;
	if (!err)
		kernel.destroyed_qps++;
	return err;
}

int ibv_cmd_create_ah(struct ibv_pd *pd, struct ibv_ah *ah,
		      struct ibv_ah_attr *attr,
		      struct ib_uverbs_create_ah_resp *resp, size_t resp_size)
{
	struct sf_create_ah_resp *r = (void *)resp;

	(void)attr;
	assert_int_equal(resp_size, sizeof(*r));
	ah->context = pd->context;
	r->drv_payload.ah = 0x4402;
	return take_failure();
}

int ibv_cmd_destroy_ah(struct ibv_ah *ah)
{
	(void)ah;
	return take_failure();
}

int ibv_cmd_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
			 uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	return take_failure();
}

int ibv_cmd_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
			 uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	return take_failure();
}

int ibv_cmd_open_xrcd(struct ibv_context *context, struct verbs_xrcd *xrcd,
		      int vxrcd_size, struct ibv_xrcd_init_attr *attr,
		      struct ibv_open_xrcd *cmd, size_t cmd_size,
		      struct ib_uverbs_open_xrcd_resp *resp, size_t resp_size)
{
	(void)attr;
	(void)cmd;
	(void)resp;
	assert_int_equal(vxrcd_size, sizeof(*xrcd));
	assert_int_equal(cmd_size, 24);
	assert_int_equal(resp_size, 4);
	xrcd->xrcd.context = context;
	return take_failure();
}

int ibv_cmd_close_xrcd(struct verbs_xrcd *xrcd)
{
	(void)xrcd;
	return take_failure();
}

int ibv_cmd_open_qp(struct ibv_context *context, struct verbs_qp *qp,
		    int vqp_sz, struct ibv_qp_open_attr *attr,
		    struct ibv_open_qp *cmd, size_t cmd_size,
		    struct ib_uverbs_create_qp_resp *resp, size_t resp_size)
{
	(void)cmd;
	(void)resp;
	(void)resp_size;
	assert_int_equal(vqp_sz, sizeof(*qp));
	assert_int_equal(cmd_size, 40);
	qp->qp.context = context;
	qp->qp.qp_num = attr->qp_num;
	qp->qp.qp_type = attr->qp_type;
	return take_failure();
}

#define XRC_SRQN 0x77

int ibv_cmd_create_srq_ex(struct ibv_context *context, struct verbs_srq *srq,
			  struct ibv_srq_init_attr_ex *attr,
			  struct ibv_create_xsrq *cmd, size_t cmd_size,
			  struct ib_uverbs_create_srq_resp *resp,
			  size_t resp_size)
{
	struct scalefabric_create_srq_req *req =
		&((struct sf_create_srq *)cmd)->drv_payload;
	struct scalefabric_create_srq_resp *r =
		&((struct sf_create_srq_resp *)resp)->drv_payload;

	(void)cmd_size;
	(void)resp_size;
	assert_int_equal(attr->attr.max_wr, 1U << req->log_depth);
	assert_int_equal(req->ring.fd, -1);
	srq->srq.context = context;
	srq->srq.handle = kernel.handle++;
	srq->srq_type = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ?
				attr->srq_type :
				IBV_SRQT_BASIC;
	if (srq->srq_type == IBV_SRQT_XRC) {
		srq->srq_num = XRC_SRQN;
		srq->cq = attr->cq;
	}
	r->ring = region((size_t)1 << (req->log_depth + req->log_stride));
	r->doorbell = doorbell();
	return take_failure();
}

int ibv_cmd_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr,
		       int attr_mask, struct ibv_modify_srq *cmd,
		       size_t cmd_size)
{
	struct scalefabric_modify_srq_req *req =
		&((struct sf_modify_srq *)cmd)->drv_payload;
	struct scalefabric_modify_srq_resp *r;
	struct sf_srq *s = to_sf_srq(srq);
	uint64_t i, from, to;
	int err = take_failure();

	if (err || !(attr_mask & IBV_SRQ_MAX_WR))
		return err;
	/* As the contract has it; here nothing has been taken. */
	assert_int_equal(cmd_size, sizeof(struct sf_modify_srq));
	assert_int_equal(attr_mask, IBV_SRQ_MAX_WR);
	assert_int_equal(attr->max_wr, 1 << req->log_depth);
	r = (void *)(uintptr_t)req->response;
	r->ring = region((size_t)1 << (req->log_depth + s->log_stride));
	for (i = kernel.srq_head; i != *s->doorbell; i++) {
		from = i & ((1ULL << s->log_depth) - 1);
		to = i & ((1ULL << req->log_depth) - 1);
		memcpy(kernel.arena + r->ring.offset + (to << s->log_stride),
		       s->ring + (from << s->log_stride), 1 << s->log_stride);
	}
	return 0;
}

int ibv_cmd_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr,
		      struct ibv_modify_cq *cmd, size_t cmd_size)
{
	(void)cq;
	(void)attr;
	(void)cmd;
	(void)cmd_size;
	return take_failure();
}

int ibv_cmd_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr,
		      struct ibv_query_srq *cmd, size_t cmd_size)
{
	(void)srq;
	(void)cmd;
	(void)cmd_size;
	attr->srq_limit = 3;
	return take_failure();
}

int ibv_cmd_destroy_srq(struct ibv_srq *srq)
{
	int err = take_failure();

	(void)srq;
	if (!err)
		kernel.destroyed_srqs++;
	return err;
}

ssize_t __real_write(int fd, const void *buf, size_t count);
ssize_t __wrap_write(int fd, const void *buf, size_t count);

ssize_t __wrap_write(int fd, const void *buf, size_t count)
{
	if (fd != kernel.fd)
		return __real_write(fd, buf, count);

	kernel.writes++;
	assert_true(count <= sizeof(kernel.last_write));
	memcpy(&kernel.last_write, buf, count);
	kernel.last_write_len = count;
	if (kernel.lock_that_must_be_free) {
		assert_int_equal(
			pthread_spin_trylock(kernel.lock_that_must_be_free), 0);
		pthread_spin_unlock(kernel.lock_that_must_be_free);
	}
	errno = EIO; /* nobody must care */
	return -1;
}

/* ------------------------------------------------------------------------
 * Device
 */

static uint64_t cq_producer[2]; /* of send CQ and receive CQ of the fixture */

static void put_cqe(struct sf_cq *cq, uint64_t *producer, struct sf_cqe cqe,
		    uint32_t opcode, uint32_t status, uint32_t flags)
{
	struct sf_cqe *slot =
		&cq->ring[*producer & ((1ULL << cq->log_depth) - 1)];

	cqe.word = sf_cqe_word(opcode, status, flags, status ? 7 : 0, *producer,
			       cq->log_depth);
	*slot = cqe;
	++*producer;
}

/*
 * RESIZE_CQ as the contract has it: CQEs in [consumer, producer) keep their
 * index and get the lap of the new depth; all other slots read as not written.
 */
int ibv_cmd_resize_cq(struct ibv_cq *ibcq, int cqe, struct ibv_resize_cq *cmd,
		      size_t cmd_size, struct ib_uverbs_resize_cq_resp *resp,
		      size_t resp_size)
{
	struct scalefabric_resize_cq_req *req =
		&((struct sf_resize_cq *)cmd)->drv_payload;
	struct scalefabric_resize_cq_resp *r =
		&((struct sf_resize_cq_resp *)resp)->drv_payload;
	struct sf_cq *cq = to_sf_cq(ibcq);
	uint64_t mask = (1ULL << req->log_depth) - 1, i;
	struct sf_cqe *ring;

	(void)cmd_size;
	(void)resp_size;
	assert_int_equal(cqe, 1 << req->log_depth);
	if (cq_producer[0] - cq->ctrl->consumer > (uint64_t)cqe)
		return EINVAL;
	r->ring = region(sizeof(*ring) << req->log_depth);
	ring = (void *)(kernel.arena + r->ring.offset);
	for (i = cq_producer[0]; i <= cq_producer[0] + mask; i++)
		ring[i & mask].word =
			(uint64_t)((sf_lap(i, req->log_depth) - 1) & 0xff)
			<< SF_CQE_LAP_SHIFT;
	for (i = cq->ctrl->consumer; i != cq_producer[0]; i++) {
		ring[i & mask] = cq->ring[i & ((1ULL << cq->log_depth) - 1)];
		ring[i & mask].word &= ~(0xffULL << SF_CQE_LAP_SHIFT);
		ring[i & mask].word |=
			(uint64_t)(sf_lap(i, req->log_depth) & 0xff)
			<< SF_CQE_LAP_SHIFT;
	}
	return take_failure();
}

/* ------------------------------------------------------------------------
 * Fixture: a context, a PD, a CQ for each direction and one QP
 */

struct fixture {
	struct verbs_device *vdev;
	struct verbs_context *vctx;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct ibv_qp *qp;
	struct sf_qp *sqp;
};

static struct ibv_qp_init_attr qp_attr(const struct fixture *f)
{
	return (struct ibv_qp_init_attr){
		.send_cq = f->send_cq,
		.recv_cq = f->recv_cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 3,
			.max_recv_sge = 2,
			.max_inline_data = 64},
	};
}

static int modify(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static void open_context(struct fixture *f)
{
	struct verbs_sysfs_dev sysfs = {};

	kernel.fd = memfd_create("arena", MFD_CLOEXEC);
	assert_true(kernel.fd >= 0);
	assert_int_equal(ftruncate(kernel.fd, ARENA_SIZE), 0);
	kernel.arena = mmap(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE,
			    MAP_SHARED, kernel.fd, 0);
	assert_ptr_not_equal(kernel.arena, MAP_FAILED);

	f->vdev = kernel.driver->alloc_device(&sysfs);
	assert_non_null(f->vdev);
	f->vdev->ops = kernel.driver;
	f->vdev->refcount = 1;
	strcpy(f->vdev->device.name, "fake0");
	f->vctx =
		kernel.driver->alloc_context(&f->vdev->device, kernel.fd, NULL);
	assert_non_null(f->vctx);
	f->context = &f->vctx->context;
	/* ibv_open_device() would put the library's wrapper here. */
	f->vctx->create_cq_ex = sf_create_cq_ex;
	f->pd = ibv_alloc_pd(f->context);
	assert_non_null(f->pd);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	const struct verbs_device_ops *driver = kernel.driver;
	uint8_t notify = kernel.notify;
	struct ibv_qp_init_attr attr;

	memset(&kernel, 0, sizeof(kernel));
	kernel.driver = driver;
	kernel.notify = notify;
	kernel.qpn = 0x100;
	open_context(f);
	f->send_cq = ibv_create_cq(f->context, 8, NULL, NULL, 0);
	f->recv_cq = ibv_create_cq(f->context, 8, NULL, NULL, 0);
	assert_non_null(f->send_cq);
	assert_non_null(f->recv_cq);
	cq_producer[0] = to_sf_cq(f->send_cq)->consumer;
	cq_producer[1] = to_sf_cq(f->recv_cq)->consumer;
	attr = qp_attr(f);
	f->qp = ibv_create_qp(f->pd, &attr);
	assert_non_null(f->qp);
	f->sqp = to_sf_qp(f->qp);
	assert_int_equal(modify(f->qp, IBV_QPS_INIT), 0);
	assert_int_equal(modify(f->qp, IBV_QPS_RTR), 0);
	assert_int_equal(modify(f->qp, IBV_QPS_RTS), 0);
	*state = f;
	return 0;
}

static int setup_notify(void **state)
{
	kernel.notify = SCALEFABRIC_DOORBELL_NOTIFY;
	return setup(state);
}

static void close_context(struct fixture *f)
{
	assert_int_equal(ibv_dealloc_pd(f->pd), 0);
	assert_null(to_sf_context(f->context)->maps);
	assert_int_equal(ibv_close_device(f->context), 0);
	kernel.driver->uninit_device(f->vdev);
	munmap(kernel.arena, ARENA_SIZE);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->qp)
		assert_int_equal(ibv_destroy_qp(f->qp), 0);
	assert_int_equal(ibv_destroy_cq(f->recv_cq), 0);
	assert_int_equal(ibv_destroy_cq(f->send_cq), 0);
	close_context(f);
	free(f);
	kernel.notify = SCALEFABRIC_DOORBELL_DEVICE;
	return 0;
}

static struct sf_wqe *slot(const struct fixture *f, uint64_t index)
{
	const struct sf_sq *sq = &f->sqp->sq;

	return (void *)(sq->ring + ((index & ((1ULL << sq->log_depth) - 1))
				    << sq->log_stride));
}

static void complete_send(struct fixture *f, uint64_t index, uint32_t opcode,
			  uint32_t status)
{
	struct sf_cqe cqe = {.wr = index, .qpn = f->qp->qp_num};

	put_cqe(to_sf_cq(f->send_cq), &cq_producer[0], cqe, opcode, status, 0);
}

static void complete_recv(struct fixture *f, uint64_t cookie, uint32_t len,
			  uint32_t flags)
{
	struct sf_cqe cqe = {.wr = (uint32_t)cookie,
			     .qpn = f->qp->qp_num,
			     .byte_len = len,
			     .imm = 0x04030201,
			     .src_qpn = 77};

	memcpy(cqe.data, "0123456789abcdef", 16);
	put_cqe(to_sf_cq(f->recv_cq), &cq_producer[1], cqe, SF_CQE_RECV, 0,
		flags);
}

static struct ibv_send_wr send_wr(uint64_t wr_id)
{
	return (struct ibv_send_wr){
		.wr_id = wr_id,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
}

static int post_one(struct fixture *f, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int err = ibv_post_send(f->qp, wr, &bad);

	assert_ptr_equal(bad, err ? wr : NULL);
	return err;
}

static int post_recv_one(struct fixture *f, uint64_t wr_id, struct ibv_sge *sge,
			 int n)
{
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = sge, .num_sge = n};
	struct ibv_recv_wr *bad = NULL;
	int err = ibv_post_recv(f->qp, &wr, &bad);

	assert_ptr_equal(bad, err ? &wr : NULL);
	return err;
}

/* ------------------------------------------------------------------------
 * Send
 */

static void a_send_fills_its_slot_and_rings_once(void **state)
{
	struct fixture *f = *state;
	struct ibv_sge sge[2] = {{0x1000, 10, 0xaa}, {0x2000, 0, 0xbb}};
	struct ibv_send_wr wr = send_wr(1);
	uint64_t first = f->sqp->sq.head;
	struct sf_wqe *wqe = slot(f, first);
	const struct sf_sge *put = &wqe->sge0;

	wr.sg_list = sge;
	wr.num_sge = 2;
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = 0x11223344;
	wr.send_flags |= IBV_SEND_FENCE | IBV_SEND_SOLICITED;
	assert_int_equal(first, FIRST_LAP * 4);
	assert_int_equal(post_one(f, &wr), 0);

	assert_true(wqe->commit ==
		    (SF_OP_SEND_IMM | 2 << 8 |
		     (SF_WQE_SIGNALED | SF_WQE_FENCE | SF_WQE_SOLICITED) << 16 |
		     (uint64_t)FIRST_LAP << 32));
	assert_int_equal(wqe->imm, 0x11223344);
	assert_int_equal(put[0].addr, 0x1000);
	assert_int_equal(put[0].length, 10);
	assert_int_equal(put[0].lkey, 0xaa);
	assert_int_equal(put[1].addr, 0x2000);
	assert_int_equal(put[1].length, 0);
	assert_int_equal(*f->sqp->sq.doorbell, first + 1);
	assert_int_equal(kernel.writes, 0);
}

static void a_write_carries_address_and_key(void **state)
{
	struct fixture *f = *state;
	struct ibv_sge sge = {0x1000, 10, 0xaa};
	struct ibv_send_wr wr = send_wr(1);
	struct sf_wqe *wqe = slot(f, f->sqp->sq.head);

	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.send_flags = 0;
	wr.imm_data = 5;
	wr.wr.rdma.remote_addr = 0x123456789abcULL;
	wr.wr.rdma.rkey = 0x77;
	assert_int_equal(post_one(f, &wr), 0);
	assert_int_equal(sf_commit_opcode(wqe->commit), SF_OP_WRITE_IMM);
	assert_int_equal(sf_commit_flags(wqe->commit), 0);
	assert_true(wqe->remote_addr == 0x123456789abcULL);
	assert_int_equal(wqe->rkey, 0x77);
	assert_int_equal(wqe->imm, 5);
}

static void atomics_put_operands_where_the_device_reads_them(void **state)
{
	struct fixture *f = *state;
	struct ibv_sge sge = {0x1000, 8, 0xaa};
	struct ibv_send_wr wr = send_wr(1);
	struct sf_wqe *cas = slot(f, f->sqp->sq.head);
	struct sf_wqe *add = slot(f, f->sqp->sq.head + 1);

	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.wr.atomic.remote_addr = 0x8000;
	wr.wr.atomic.rkey = 3;
	wr.wr.atomic.compare_add = 11;
	wr.wr.atomic.swap = 22;
	assert_int_equal(post_one(f, &wr), 0);
	assert_int_equal(sf_commit_opcode(cas->commit), SF_OP_ATOMIC_CAS);
	assert_int_equal(sf_commit_nsge(cas->commit), 1);
	assert_int_equal(cas->arg0, 22);
	assert_int_equal(cas->arg1, 11);
	assert_int_equal(cas->sge0.addr, 0x1000);
	assert_int_equal(cas->remote_addr, 0x8000);

	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	assert_int_equal(post_one(f, &wr), 0);
	assert_int_equal(sf_commit_opcode(add->commit), SF_OP_ATOMIC_FADD);
	assert_int_equal(add->arg0, 11);

	wr.num_sge = 0;
	assert_int_equal(post_one(f, &wr), EINVAL);
	wr.num_sge = 1;
	wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(post_one(f, &wr), EINVAL);
}

/* Index 0x12 of the tables; the tag is the caller's. */
#define WINDOW_KEY 0x1203u

static void expect_bind(const struct sf_wqe *wqe, uint32_t key)
{
	const struct sf_bind *bind = (const void *)&wqe->sge0;

	assert_int_equal(sf_commit_opcode(wqe->commit), SF_OP_BIND_MW);
	assert_int_equal(sf_commit_nsge(wqe->commit), 0);
	assert_int_equal(wqe->rkey, key);
	assert_int_equal(wqe->imm, 0x501);
	assert_int_equal(wqe->remote_addr, 0x4010);
	assert_int_equal(bind->length, 99);
	assert_int_equal(bind->access, SF_ACCESS_REMOTE_READ);
	assert_int_equal(bind->reserved, 0);
}

static void windows_are_bound_and_invalidated_by_slots(void **state)
{
	struct fixture *f = *state;
	struct ibv_mr mr = {.lkey = 0x501, .pd = f->pd};
	struct ibv_mw mw = {.context = f->context,
			    .pd = f->pd,
			    .rkey = WINDOW_KEY,
			    .type = IBV_MW_TYPE_1};
	struct ibv_mw_bind bind = {
		.wr_id = 9,
		.bind_info = {&mr, 0x4010, 99, IBV_ACCESS_REMOTE_READ},
	};
	struct ibv_send_wr wr = send_wr(1);
	uint64_t first = f->sqp->sq.head;

	memset(&slot(f, first)->sge0, 0xa5, 32);
	/* The verb chooses the next key. */
	assert_int_equal(sf_bind_mw(f->qp, &mw, &bind), 0);
	assert_int_equal(mw.rkey, WINDOW_KEY + 1);
	expect_bind(slot(f, first), WINDOW_KEY + 1);
	/* The program does, but not which window. */
	wr.opcode = IBV_WR_BIND_MW;
	wr.num_sge = 1; /* means nothing here */
	wr.bind_mw.mw = &mw;
	wr.bind_mw.rkey = 0x77;
	wr.bind_mw.bind_info = bind.bind_info;
	assert_int_equal(post_one(f, &wr), 0);
	expect_bind(slot(f, first + 1), (WINDOW_KEY & ~0xffu) | 0x77);
	/* Of no region: nothing. */
	wr.bind_mw.bind_info.mr = NULL;
	assert_int_equal(post_one(f, &wr), 0);
	assert_int_equal(slot(f, first + 2)->imm, 0);
	assert_int_equal(slot(f, first + 2)->sge0.addr, 0);
	wr.opcode = IBV_WR_LOCAL_INV;
	wr.invalidate_rkey = 0x1277;
	wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(post_one(f, &wr), EINVAL);
	wr.send_flags &= ~IBV_SEND_INLINE;
	assert_int_equal(post_one(f, &wr), 0);
	assert_int_equal(sf_commit_opcode(slot(f, first + 3)->commit),
			 SF_OP_LOCAL_INV);
	assert_int_equal(sf_commit_nsge(slot(f, first + 3)->commit), 0);
	assert_int_equal(slot(f, first + 3)->imm, 0x1277);
}

static void inline_data_is_gathered_into_the_slot(void **state)
{
	struct fixture *f = *state;
	char a[3] = "abc", b[5] = "defgh";
	struct ibv_sge sge[3] = {
		{(uintptr_t)a, 3, 0}, {0, 0, 0}, {(uintptr_t)b, 5, 0}};
	struct ibv_send_wr wr = send_wr(1);
	struct sf_wqe *wqe = slot(f, f->sqp->sq.head);

	wr.sg_list = sge;
	wr.num_sge = 3;
	wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(post_one(f, &wr), 0);
	assert_int_equal(sf_commit_nsge(wqe->commit), 0);
	assert_true(sf_commit_flags(wqe->commit) & SF_WQE_INLINE);
	assert_int_equal(wqe->inline_len, 8);
	assert_memory_equal((uint8_t *)wqe + SF_SLOT_DATA, "abcdefgh", 8);
}

static void inline_data_is_bounded_by_its_sum(void **state)
{
	struct fixture *f = *state;
	uint32_t max = f->sqp->cap.max_inline_data;
	char *buf = calloc(1, max + 1);
	struct ibv_sge sge[2] = {{(uintptr_t)buf, max, 0}, {0, 0, 0}};
	struct ibv_send_wr wr = send_wr(1);
	uint64_t first = f->sqp->sq.head;
	struct sf_wqe *wqe = slot(f, first);
	uint64_t next_commit = slot(f, first + 1)->commit;

	wr.sg_list = sge;
	wr.num_sge = 1;
	wr.send_flags |= IBV_SEND_INLINE;
	memset(buf, 0xee, max + 1);
	assert_int_equal(post_one(f, &wr), 0);
	assert_int_equal(wqe->inline_len, max);
	assert_true(slot(f, first + 1)->commit == next_commit);

	wr.num_sge = 2;
	sge[1] = (struct ibv_sge){(uintptr_t)buf, 1, 0};
	assert_int_equal(post_one(f, &wr), EINVAL);
	sge[0].length = 16;
	sge[1].length = UINT32_MAX - 8; /* the sum wraps to 7 */
	assert_int_equal(post_one(f, &wr), EINVAL);
	assert_int_equal(f->sqp->sq.head, first + 1);
	assert_int_equal(*f->sqp->sq.doorbell, first + 1);
	free(buf);
}

static void sq_sig_all_signals_every_request(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_init_attr attr = qp_attr(f);
	struct ibv_send_wr wr = send_wr(1), *bad;
	struct ibv_qp *qp;
	struct sf_sq *sq;

	attr.sq_sig_all = 1;
	qp = ibv_create_qp(f->pd, &attr);
	modify(qp, IBV_QPS_RTS);
	sq = &to_sf_qp(qp)->sq;
	wr.send_flags = 0;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(sf_commit_flags(((struct sf_wqe *)sq->ring)->commit),
			 SF_WQE_SIGNALED);
	ibv_destroy_qp(qp);
}

static void a_chain_is_posted_up_to_the_bad_request(void **state)
{
	struct fixture *f = *state;
	struct ibv_send_wr wr[3] = {send_wr(1), send_wr(2), send_wr(3)};
	struct ibv_send_wr *bad = NULL;
	uint64_t first = f->sqp->sq.head;

	wr[0].next = &wr[1];
	wr[1].next = &wr[2];
	wr[2].opcode = IBV_WR_TSO;
	assert_int_equal(ibv_post_send(f->qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[2]);
	assert_int_equal(f->sqp->sq.head, first + 2);
	assert_int_equal(*f->sqp->sq.doorbell, first + 2);
	assert_int_equal(sf_commit_lap(slot(f, first + 1)->commit), FIRST_LAP);
	assert_int_equal(sf_commit_lap(slot(f, first + 2)->commit), 0);
}

static void too_many_sges_and_odd_opcodes_are_refused(void **state)
{
	struct fixture *f = *state;
	struct ibv_sge sge[40] = {};
	struct ibv_send_wr wr = send_wr(1);

	wr.sg_list = sge;
	wr.num_sge = f->sqp->cap.max_send_sge + 1;
	assert_int_equal(post_one(f, &wr), EINVAL);
	wr.num_sge = -1;
	assert_int_equal(post_one(f, &wr), EINVAL);
	wr.num_sge = 0;
	wr.opcode = 4711;
	assert_int_equal(post_one(f, &wr), EINVAL);
	wr.opcode = -1;
	assert_int_equal(post_one(f, &wr), EINVAL);
	wr.opcode = IBV_WR_RDMA_READ;
	wr.send_flags = IBV_SEND_INLINE;
	assert_int_equal(post_one(f, &wr), EINVAL);
	assert_int_equal(f->sqp->sq.head, FIRST_LAP * 4);
}

static void a_full_queue_says_enomem_until_a_completion_is_polled(void **state)
{
	struct fixture *f = *state;
	struct ibv_send_wr wr = send_wr(0);
	uint64_t first = f->sqp->sq.head, i;
	struct ibv_wc wc[4];

	for (i = 0; i < 50; i++) {
		wr.wr_id = 1000 + i;
		assert_int_equal(post_one(f, &wr), 0);
		if (i < 3)
			continue;
		wr.wr_id = 0;
		assert_int_equal(post_one(f, &wr), ENOMEM);
		complete_send(f, first + i - 3, SF_OP_SEND, 0);
		assert_int_equal(post_one(f, &wr), ENOMEM);
		assert_int_equal(ibv_poll_cq(f->send_cq, 4, wc), 1);
		assert_int_equal(wc[0].wr_id, 1000 + i - 3);
		assert_int_equal(wc[0].opcode, IBV_WC_SEND);
	}
	assert_int_equal(sf_commit_lap(slot(f, first + 49)->commit),
			 (first + 49) / 4);
}

static void a_signaled_completion_frees_the_unsignaled_before_it(void **state)
{
	struct fixture *f = *state;
	struct ibv_send_wr wr = send_wr(0);
	uint64_t first = f->sqp->sq.head;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 4; i++) {
		wr.wr_id = i;
		wr.send_flags = i == 2 ? IBV_SEND_SIGNALED : 0;
		assert_int_equal(post_one(f, &wr), 0);
	}
	complete_send(f, first + 2, SF_OP_SEND, 0);
	assert_int_equal(ibv_poll_cq(f->send_cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 2);
	for (i = 0; i < 3; i++)
		assert_int_equal(post_one(f, &wr), 0);
	assert_int_equal(post_one(f, &wr), ENOMEM);
}

static void states_decide_what_may_be_posted(void **state)
{
	struct fixture *f = *state;
	struct ibv_send_wr wr = send_wr(1);

	modify(f->qp, IBV_QPS_RESET);
	assert_int_equal(post_one(f, &wr), EINVAL);
	assert_int_equal(post_recv_one(f, 1, NULL, 0), EINVAL);
	modify(f->qp, IBV_QPS_INIT);
	assert_int_equal(post_one(f, &wr), EINVAL);
	assert_int_equal(post_recv_one(f, 1, NULL, 0), 0);
	modify(f->qp, IBV_QPS_ERR);
	assert_int_equal(post_one(f, &wr), 0);
	assert_int_equal(post_recv_one(f, 1, NULL, 0), 0);
	assert_int_equal(*f->sqp->sq.doorbell, f->sqp->sq.head);
}

/* Watches a queue of 4: a batch of 4 must appear from nothing to whole. */
struct watcher {
	struct fixture *f;
	uint64_t index;
	int torn;
	int go;
};

static void *watch(void *arg)
{
	struct watcher *w = arg;
	uint32_t lap = w->index / 4;
	int i;

	__atomic_store_n(&w->go, 1, __ATOMIC_RELEASE);
	while (sf_commit_lap(__atomic_load_n(&slot(w->f, w->index)->commit,
					     __ATOMIC_ACQUIRE)) != lap)
		;
	for (i = 1; i < 4; i++)
		if (sf_commit_lap(
			    __atomic_load_n(&slot(w->f, w->index + i)->commit,
					    __ATOMIC_ACQUIRE)) != lap)
			w->torn++;
	return NULL;
}

static void a_batch_becomes_visible_as_a_whole(void **state)
{
	struct fixture *f = *state;
	struct ibv_send_wr wr[4] = {send_wr(0), send_wr(1), send_wr(2),
				    send_wr(3)};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	pthread_t thread;
	int i, round;

	for (i = 0; i < 3; i++)
		wr[i].next = &wr[i + 1];
	for (round = 0; round < 50; round++) {
		struct watcher w = {.f = f, .index = f->sqp->sq.head};

		pthread_create(&thread, NULL, watch, &w);
		while (!__atomic_load_n(&w.go, __ATOMIC_ACQUIRE))
			;
		assert_int_equal(ibv_post_send(f->qp, wr, &bad), 0);
		pthread_join(thread, NULL);
		assert_int_equal(w.torn, 0);
		complete_send(f, f->sqp->sq.head - 1, SF_OP_SEND, 0);
		assert_int_equal(ibv_poll_cq(f->send_cq, 1, &wc), 1);
	}
}

static void a_notify_follows_the_store_once_and_outside_the_lock(void **state)
{
	struct fixture *f = *state;
	struct ibv_send_wr wr[2] = {send_wr(1), send_wr(2)};
	struct sf_notify *cmd = &kernel.last_write;
	struct ibv_send_wr *bad;

	wr[0].next = &wr[1];
	kernel.lock_that_must_be_free = &f->sqp->sq.lock.spin;
	assert_int_equal(ibv_post_send(f->qp, wr, &bad), 0);
	assert_int_equal(kernel.writes, 1);
	assert_int_equal(kernel.last_write_len, 32);
	assert_int_equal(cmd->hdr.command, IB_USER_VERBS_CMD_POST_SEND);
	assert_int_equal(cmd->hdr.in_words, 8);
	assert_int_equal(cmd->hdr.out_words, 1);
	assert_int_equal(cmd->handle, f->qp->handle);
	assert_int_equal(cmd->wr_count, 0);
	assert_int_equal(cmd->sge_count, 0);
	assert_int_equal(cmd->wqe_size, sizeof(struct ib_uverbs_send_wr));

	kernel.lock_that_must_be_free = &f->sqp->rq.lock.spin;
	assert_int_equal(post_recv_one(f, 1, NULL, 0), 0);
	assert_int_equal(kernel.writes, 2);
	assert_int_equal(cmd->hdr.command, IB_USER_VERBS_CMD_POST_RECV);

	wr[0].opcode = IBV_WR_TSO;
	assert_int_equal(ibv_post_send(f->qp, wr, &bad), EINVAL);
	assert_int_equal(kernel.writes, 2);
}

/* ------------------------------------------------------------------------
 * The ibv_wr_ builder
 */

static struct ibv_qp *new_qp_ex(struct fixture *f, uint64_t send_ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = f->send_cq,
		.recv_cq = f->recv_cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 3,
			.max_recv_sge = 2,
			.max_inline_data = 64},
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = f->pd,
		.send_ops_flags = send_ops,
	};

	return ibv_create_qp_ex(f->context, &attr);
}

#define ALL_SEND_OPS                                                      \
	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |             \
	 IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
	 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |   \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

/* Swap the fixture's QP for one with a builder. */
static struct ibv_qp_ex *use_builder(struct fixture *f)
{
	assert_int_equal(ibv_destroy_qp(f->qp), 0);
	f->qp = new_qp_ex(f, ALL_SEND_OPS);
	assert_non_null(f->qp);
	f->sqp = to_sf_qp(f->qp);
	assert_int_equal(modify(f->qp, IBV_QPS_RTS), 0);
	assert_non_null(ibv_qp_to_qp_ex(f->qp));
	return ibv_qp_to_qp_ex(f->qp);
}

static void the_builder_makes_the_slots_that_post_send_makes(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_ex *qpx = use_builder(f);
	struct ibv_sge sge[2] = {{0x1000, 8, 1}, {0x2000, 16, 2}};
	struct ibv_data_buf buf[2] = {{"abc", 3}, {"de", 2}};
	uint64_t first = f->sqp->sq.head;
	struct ibv_wc wc[4];

	ibv_wr_start(qpx);
	qpx->wr_id = 1;
	qpx->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
	ibv_wr_rdma_write(qpx, 7, 0x8000);
	ibv_wr_set_sge_list(qpx, 2, sge);
	qpx->wr_id = 2;
	qpx->wr_flags = IBV_SEND_INLINE;
	ibv_wr_send_imm(qpx, 0x99);
	ibv_wr_set_inline_data_list(qpx, 2, buf);
	qpx->wr_id = 3;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_cmp_swp(qpx, 8, 0x9000, 11, 22);
	ibv_wr_set_sge(qpx, 1, 0x1000, 8);
	assert_int_equal(slot(f, first)->commit, 0);
	assert_int_equal(f->sqp->sq.head, first);
	assert_int_equal(ibv_wr_complete(qpx), 0);

	assert_true(slot(f, first)->commit ==
		    sf_commit(SF_OP_WRITE, 2, SF_WQE_SIGNALED | SF_WQE_FENCE,
			      first, 2));
	assert_int_equal(slot(f, first)->remote_addr, 0x8000);
	assert_int_equal(slot(f, first)->rkey, 7);
	assert_int_equal((&slot(f, first)->sge0)[1].addr, 0x2000);
	assert_true(slot(f, first + 1)->commit ==
		    sf_commit(SF_OP_SEND_IMM, 0, SF_WQE_INLINE, first + 1, 2));
	assert_int_equal(slot(f, first + 1)->inline_len, 5);
	assert_int_equal(slot(f, first + 1)->imm, 0x99);
	assert_memory_equal(&slot(f, first + 1)->sge0, "abcde", 5);
	assert_true(slot(f, first + 2)->commit == sf_commit(SF_OP_ATOMIC_CAS, 1,
							    SF_WQE_SIGNALED,
							    first + 2, 2));
	assert_int_equal(slot(f, first + 2)->arg0, 22);
	assert_int_equal(slot(f, first + 2)->arg1, 11);
	assert_int_equal(*f->sqp->sq.doorbell, first + 3);

	complete_send(f, first, SF_OP_WRITE, 0);
	complete_send(f, first + 2, SF_OP_ATOMIC_CAS, 0);
	assert_int_equal(ibv_poll_cq(f->send_cq, 4, wc), 2);
	assert_int_equal(wc[0].wr_id, 1);
	assert_int_equal(wc[1].wr_id, 3);
	assert_int_equal(wc[1].opcode, IBV_WC_COMP_SWAP);
}

static void an_aborted_session_posts_nothing(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_ex *qpx = use_builder(f);
	uint64_t first = f->sqp->sq.head;

	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_sge(qpx, 1, 0x1000, 8);
	ibv_wr_abort(qpx);
	assert_int_equal(slot(f, first)->commit, 0);
	assert_int_equal(f->sqp->sq.head, first);
	ibv_wr_start(qpx);
	assert_int_equal(ibv_wr_complete(qpx), 0);
	assert_int_equal(f->sqp->sq.head, first);
	assert_int_equal(*f->sqp->sq.doorbell, 0);
}

static void a_session_with_an_error_posts_nothing_and_unlocks(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_ex *qpx = use_builder(f);
	struct ibv_sge sge[40] = {};
	char big[600] = "";
	int i;

	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_inline_data(qpx, big, sizeof(big));
	ibv_wr_send(qpx);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);

	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_sge_list(qpx, 40, sge);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);

	ibv_wr_start(qpx);
	ibv_wr_rdma_read(qpx, 1, 2);
	ibv_wr_set_inline_data(qpx, big, 1);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);

	ibv_wr_start(qpx);
	ibv_wr_atomic_fetch_add(qpx, 1, 2, 3);
	ibv_wr_set_sge_list(qpx, 2, sge);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);

	ibv_wr_start(qpx);
	for (i = 0; i < 5; i++)
		ibv_wr_send(qpx);
	assert_int_equal(ibv_wr_complete(qpx), ENOMEM);

	assert_int_equal(f->sqp->sq.head, FIRST_LAP * 4);
	assert_int_equal(*f->sqp->sq.doorbell, 0);

	modify(f->qp, IBV_QPS_RESET);
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	assert_int_equal(ibv_wr_complete(qpx), EINVAL);
	assert_int_equal(pthread_spin_trylock(&f->sqp->sq.lock.spin), 0);
	pthread_spin_unlock(&f->sqp->sq.lock.spin);
}

static void a_builder_offers_what_was_asked_for_and_no_more(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp *qp;

	assert_null(new_qp_ex(f, IBV_QP_EX_WITH_TSO));
	assert_int_equal(errno, EOPNOTSUPP);
	qp = new_qp_ex(f, IBV_QP_EX_WITH_SEND);
	assert_non_null(ibv_qp_to_qp_ex(qp)->wr_send);
	assert_null(ibv_qp_to_qp_ex(qp)->wr_rdma_write);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_null(ibv_qp_to_qp_ex(f->qp));
}

/* ------------------------------------------------------------------------
 * Receive
 */

static void a_receive_becomes_a_descriptor_and_moves_the_doorbell(void **state)
{
	struct fixture *f = *state;
	struct sf_rq *rq = &f->sqp->rq;
	uint64_t first = rq->head;
	struct sf_rq_desc *desc =
		(void *)(rq->ring + ((first & 3) << rq->log_stride));
	struct sf_sge *put = (void *)(desc + 1);
	struct ibv_sge sge[4] = {{0x1000, 10, 1}, {0x2000, 20, 2}};

	assert_int_equal(post_recv_one(f, 1, sge, 2), 0);
	assert_int_equal(desc->cookie, (uint32_t)first);
	assert_int_equal(desc->n_sge, 2);
	assert_int_equal(put[1].addr, 0x2000);
	assert_int_equal(put[1].length, 20);
	assert_int_equal(put[1].lkey, 2);
	assert_true(*rq->doorbell == first + 1);

	assert_int_equal(post_recv_one(f, 1, sge, 4), EINVAL);
	assert_int_equal(post_recv_one(f, 2, NULL, 0), 0);
	assert_int_equal(post_recv_one(f, 3, NULL, 0), 0);
	assert_int_equal(post_recv_one(f, 4, NULL, 0), 0);
	assert_int_equal(post_recv_one(f, 5, NULL, 0), ENOMEM);
	assert_true(*rq->doorbell == first + 4);
}

static void receives_complete_across_the_wrap_of_the_cookie(void **state)
{
	struct fixture *f = *state;
	uint64_t first = f->sqp->rq.head;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 20; i++) {
		assert_int_equal(post_recv_one(f, 100 + i, NULL, 0), 0);
		complete_recv(f, first + i, 9, SF_CQE_IMM);
		assert_int_equal(ibv_poll_cq(f->recv_cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, 100 + i);
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.byte_len, 9);
		assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
		assert_int_equal(wc.imm_data, 0x04030201);
		assert_int_equal(wc.qp_num, f->qp->qp_num);
		assert_int_equal(wc.src_qp, 77);
	}
	assert_int_equal(to_sf_cq(f->recv_cq)->ctrl->consumer, cq_producer[1]);
}

static void an_inline_payload_lands_in_the_buffers_of_the_receive(void **state)
{
	struct fixture *f = *state;
	char a[4] = "....", b[20] = "....................";
	struct ibv_sge sge[2] = {{(uintptr_t)a, 3, 0}, {(uintptr_t)b, 20, 0}};
	uint64_t first = f->sqp->rq.head;
	struct ibv_wc wc;

	assert_int_equal(post_recv_one(f, 1, sge, 2), 0);
	complete_recv(f, first, 7, SF_CQE_INLINE);
	assert_int_equal(ibv_poll_cq(f->recv_cq, 1, &wc), 1);
	assert_int_equal(wc.byte_len, 7);
	assert_memory_equal(a, "012.", 4);
	assert_memory_equal(b, "3456....", 8);

	/* A device that lies about the length gets 16 bytes at most. */
	assert_int_equal(post_recv_one(f, 2, sge, 2), 0);
	complete_recv(f, first + 1, 4000, SF_CQE_INLINE);
	assert_int_equal(ibv_poll_cq(f->recv_cq, 1, &wc), 1);
	assert_memory_equal(b, "3456789abcdef.......", 20);
}

/* ------------------------------------------------------------------------
 * Completions that mean nothing
 */

static void a_completion_of_a_destroyed_qp_is_consumed_in_silence(void **state)
{
	struct fixture *f = *state;
	struct sf_cq *cq = to_sf_cq(f->send_cq);
	struct ibv_send_wr wr = send_wr(1);
	uint64_t start = cq->consumer;
	struct ibv_wc wc[4];

	assert_int_equal(post_one(f, &wr), 0);
	complete_send(f, f->sqp->sq.tail, SF_OP_SEND, 0);
	assert_int_equal(ibv_destroy_qp(f->qp), 0);
	f->qp = NULL;
	assert_int_equal(ibv_poll_cq(f->send_cq, 4, wc), 0);
	assert_int_equal(cq->ctrl->consumer, start + 1);
	assert_int_equal(ibv_poll_cq(f->send_cq, 4, wc), 0);
}

static void impossible_completions_are_dropped_and_good_ones_kept(void **state)
{
	struct fixture *f = *state;
	struct ibv_send_wr wr = send_wr(42);
	uint64_t first = f->sqp->sq.head;
	struct sf_cqe cqe = {.wr = first, .qpn = 0xffffff};
	struct ibv_wc wc[4];

	assert_int_equal(post_one(f, &wr), 0);
	put_cqe(to_sf_cq(f->send_cq), &cq_producer[0], cqe, SF_OP_SEND, 0, 0);
	complete_send(f, first - 1, SF_OP_SEND, 0);
	complete_send(f, first + 1, SF_OP_SEND, 0);
	complete_send(f, ~0ULL, SF_OP_SEND, 0);
	complete_send(f, first, 0x7f, 0xee);
	assert_int_equal(ibv_poll_cq(f->send_cq, 4, wc), 1);
	assert_int_equal(wc[0].wr_id, 42);
	assert_int_equal(wc[0].status, IBV_WC_GENERAL_ERR);
}

static void reset_forgets_the_old_life_and_its_completions(void **state)
{
	struct fixture *f = *state;
	struct ibv_send_wr wr = send_wr(1);
	uint64_t old_send = f->sqp->sq.head, old_recv = f->sqp->rq.head;
	struct ibv_wc wc[8];

	assert_int_equal(post_one(f, &wr), 0);
	assert_int_equal(post_one(f, &wr), 0);
	assert_int_equal(post_recv_one(f, 2, NULL, 0), 0);
	complete_send(f, old_send, SF_OP_SEND, SF_ST_WR_FLUSH_ERR);
	complete_recv(f, old_recv, 0, 0);
	assert_int_equal(modify(f->qp, IBV_QPS_RESET), 0);
	assert_int_equal(f->sqp->sq.head, old_send + 4);
	assert_int_equal(f->sqp->sq.tail, old_send + 4);

	modify(f->qp, IBV_QPS_RTS);
	wr.wr_id = 10;
	assert_int_equal(post_one(f, &wr), 0);
	assert_int_equal(post_recv_one(f, 20, NULL, 0), 0);
	complete_send(f, old_send + 1, SF_OP_SEND, SF_ST_WR_FLUSH_ERR);
	complete_send(f, old_send + 4, SF_OP_SEND, 0);
	complete_recv(f, old_recv + 1, 0, 0);
	assert_int_equal(ibv_poll_cq(f->send_cq, 8, wc), 1);
	assert_int_equal(wc[0].wr_id, 10);
	assert_int_equal(ibv_poll_cq(f->recv_cq, 8, wc), 1);
	assert_int_equal(wc[0].wr_id, 20);
}

static void a_failed_reset_changes_nothing(void **state)
{
	struct fixture *f = *state;
	struct ibv_send_wr wr = send_wr(1);
	uint64_t head;

	assert_int_equal(post_one(f, &wr), 0);
	head = f->sqp->sq.head;
	kernel.fail = EINVAL;
	assert_int_equal(modify(f->qp, IBV_QPS_RESET), EINVAL);
	assert_int_equal(f->sqp->sq.head, head);
	assert_int_equal(f->sqp->sq.tail, head - 1);
	assert_int_equal(post_one(f, &wr), 0);
}

static void errors_carry_status_and_syndrome(void **state)
{
	struct fixture *f = *state;
	struct ibv_send_wr wr = send_wr(9);
	struct ibv_wc wc;

	assert_int_equal(post_one(f, &wr), 0);
	complete_send(f, f->sqp->sq.tail, SF_OP_SEND, SF_ST_REM_ACCESS_ERR);
	assert_int_equal(ibv_poll_cq(f->send_cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 9);
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(wc.vendor_err, 7);
	assert_int_equal(wc.qp_num, f->qp->qp_num);
}

/* ------------------------------------------------------------------------
 * Completion queues
 */

static void polling_takes_no_more_than_asked_and_stores_one_index(void **state)
{
	struct fixture *f = *state;
	struct sf_cq *cq = to_sf_cq(f->send_cq);
	struct ibv_send_wr wr = send_wr(0);
	uint64_t first = f->sqp->sq.head, start = cq->consumer;
	struct ibv_wc wc[4];
	int i;

	cq->ctrl->consumer = 4711;
	assert_int_equal(ibv_poll_cq(f->send_cq, 4, wc), 0);
	assert_int_equal(cq->ctrl->consumer, 4711);
	for (i = 0; i < 3; i++) {
		assert_int_equal(post_one(f, &wr), 0);
		complete_send(f, first + i, SF_OP_SEND, 0);
	}
	assert_int_equal(ibv_poll_cq(f->send_cq, 2, wc), 2);
	assert_int_equal(cq->ctrl->consumer, start + 2);
	assert_int_equal(ibv_poll_cq(f->send_cq, 2, wc), 1);
	assert_int_equal(cq->ctrl->consumer, start + 3);
}

static void arming_names_index_and_mode_and_rings(void **state)
{
	struct fixture *f = *state;
	struct sf_cq *cq = to_sf_cq(f->send_cq);

	assert_int_equal(ibv_req_notify_cq(f->send_cq, 0), 0);
	assert_true(cq->ctrl->arm ==
		    (cq->consumer | (uint64_t)SF_CQ_ARM_ANY << 62));
	assert_int_equal(*cq->doorbell, cq->consumer);
	assert_int_equal(ibv_req_notify_cq(f->send_cq, 1), 0);
	assert_true(cq->ctrl->arm ==
		    (cq->consumer | (uint64_t)SF_CQ_ARM_SOLICITED << 62));
	assert_int_equal(kernel.notify_cq_calls, cq->notify ? 2 : 0);
}

static void resize_keeps_outstanding_completions(void **state)
{
	struct fixture *f = *state;
	struct sf_cq *cq = to_sf_cq(f->send_cq);
	struct ibv_send_wr wr = send_wr(0);
	uint64_t first = f->sqp->sq.head;
	struct ibv_wc wc[8];
	int i;

	for (i = 0; i < 4; i++) {
		wr.wr_id = i;
		assert_int_equal(post_one(f, &wr), 0);
		complete_send(f, first + i, SF_OP_SEND, 0);
	}
	assert_int_equal(ibv_poll_cq(f->send_cq, 1, wc), 1);
	assert_int_equal(ibv_resize_cq(f->send_cq, 2), EINVAL);
	assert_int_equal(cq->log_depth, 3);
	assert_int_equal(ibv_resize_cq(f->send_cq, 33), 0);
	assert_int_equal(f->send_cq->cqe, 64);
	assert_int_equal(ibv_poll_cq(f->send_cq, 8, wc), 3);
	assert_int_equal(wc[0].wr_id, 1);
	assert_int_equal(wc[2].wr_id, 3);

	assert_int_equal(ibv_resize_cq(f->send_cq, 4), 0);
	assert_int_equal(post_one(f, &wr), 0);
	complete_send(f, first + 4, SF_OP_SEND, 0);
	assert_int_equal(ibv_poll_cq(f->send_cq, 8, wc), 1);
	assert_int_equal(ibv_resize_cq(f->send_cq, 0), EINVAL);
	assert_int_equal(ibv_resize_cq(f->send_cq, -1), EINVAL);
	assert_int_equal(ibv_resize_cq(f->send_cq, 4097), EINVAL);
	assert_int_equal(f->send_cq->cqe, 4);
}

static void cq_sizes_are_checked_and_rounded(void **state)
{
	struct fixture *f = *state;
	struct ibv_cq *cq;

	assert_null(ibv_create_cq(f->context, 0, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(f->context, -5, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(f->context, 4097, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	cq = ibv_create_cq(f->context, 100, NULL, NULL, 0);
	assert_non_null(cq);
	assert_int_equal(cq->cqe, 128);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

static struct ibv_cq_ex *new_cq_ex(struct fixture *f, uint64_t wc_flags,
				   uint32_t flags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 8,
		.wc_flags = wc_flags,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = flags,
	};

	return ibv_create_cq_ex(f->context, &attr);
}

static void extended_polling_reads_every_field(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_init_attr attr = qp_attr(f);
	struct ibv_poll_cq_attr poll = {};
	struct ibv_send_wr wr = send_wr(31), *bad;
	struct ibv_cq_ex *ex;
	struct sf_cqe cqe = {};
	struct sf_cq *cq;
	struct ibv_qp *qp;
	uint64_t producer;

	ex = new_cq_ex(
		f, IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
		0);
	assert_non_null(ex);
	cq = to_sf_cq_ex(ex);
	attr.send_cq = ibv_cq_ex_to_cq(ex);
	attr.recv_cq = attr.send_cq;
	qp = ibv_create_qp(f->pd, &attr);
	modify(qp, IBV_QPS_RTS);
	assert_int_equal(ibv_start_poll(ex, &poll), ENOENT);
	assert_int_equal(ibv_start_poll(ex, &poll), ENOENT);

	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	wr.wr_id = 32;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	cqe = (struct sf_cqe){.wr = to_sf_qp(qp)->sq.tail,
			      .qpn = qp->qp_num,
			      .byte_len = 5,
			      .imm = 6,
			      .src_qpn = 7,
			      .slid = 8,
			      .sl = 9,
			      .path_bits = 10,
			      .timestamp = 11};
	producer = cq->consumer;
	put_cqe(cq, &producer, cqe, SF_OP_READ, 0, 0);
	cqe.qpn = 0xdead; /* of nobody: skipped in the middle of a batch */
	put_cqe(cq, &producer, cqe, SF_OP_READ, 0, 0);
	cqe.qpn = qp->qp_num;
	cqe.wr++;
	put_cqe(cq, &producer, cqe, SF_OP_SEND, SF_ST_RETRY_EXC_ERR, 0);

	assert_int_equal(ibv_start_poll(ex, &poll), 0);
	assert_int_equal(ex->wr_id, 31);
	assert_int_equal(ex->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_RDMA_READ);
	assert_int_equal(ibv_wc_read_byte_len(ex), 5);
	assert_int_equal(ibv_wc_read_imm_data(ex), 6);
	assert_int_equal(ibv_wc_read_qp_num(ex), qp->qp_num);
	assert_int_equal(ibv_wc_read_src_qp(ex), 7);
	assert_int_equal(ibv_wc_read_slid(ex), 8);
	assert_int_equal(ibv_wc_read_sl(ex), 9);
	assert_int_equal(ibv_wc_read_dlid_path_bits(ex), 10);
	assert_int_equal(ibv_wc_read_completion_ts(ex), 11);
	assert_int_equal(ibv_next_poll(ex), 0);
	assert_int_equal(ex->wr_id, 32);
	assert_int_equal(ex->status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(ibv_wc_read_vendor_err(ex), 7);
	assert_int_equal(ibv_next_poll(ex), ENOENT);
	ibv_end_poll(ex);
	assert_int_equal(cq->ctrl->consumer, producer);
	assert_int_equal(pthread_spin_trylock(&cq->lock.spin), 0);
	pthread_spin_unlock(&cq->lock.spin);

	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
}

static void extended_cqs_refuse_what_they_cannot_do(void **state)
{
	struct fixture *f = *state;
	struct ibv_cq_ex *ex;

	assert_null(new_cq_ex(f, IBV_WC_EX_WITH_TM_INFO, 0));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(new_cq_ex(f, 0, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN));
	assert_int_equal(errno, EOPNOTSUPP);
	ex = new_cq_ex(f, 0, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
	assert_non_null(ex);
	assert_false(to_sf_cq_ex(ex)->lock.needed);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
}

/* ------------------------------------------------------------------------
 * Life of a queue pair
 */

static void reported_capabilities_are_usable(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_init_attr attr = qp_attr(f);
	struct ibv_qp_init_attr init = {};
	struct ibv_qp_attr a = {};
	struct ibv_qp *qp;

	attr.cap.max_send_wr = 5;
	attr.cap.max_send_sge = 1;
	attr.cap.max_inline_data = 33;
	attr.cap.max_recv_wr = 0;
	attr.cap.max_recv_sge = 0;
	qp = ibv_create_qp(f->pd, &attr);
	assert_non_null(qp);
	assert_int_equal(attr.cap.max_send_wr, 8);
	assert_int_equal(attr.cap.max_inline_data, 96);
	assert_int_equal(attr.cap.max_send_sge, 6);
	assert_int_equal(attr.cap.max_recv_wr, 1);
	assert_int_equal(attr.cap.max_recv_sge, 1);
	assert_int_equal(ibv_query_qp(qp, &a, IBV_QP_CAP, &init), 0);
	assert_memory_equal(&init.cap, &attr.cap, sizeof(attr.cap));
	assert_memory_equal(&a.cap, &attr.cap, sizeof(attr.cap));
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void the_largest_queue_pair_fits_the_format(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_init_attr attr = qp_attr(f);
	struct ibv_qp *qp;

	attr.cap.max_send_sge = SF_MAX_SEND_SGE;
	attr.cap.max_inline_data = SF_MAX_INLINE;
	attr.cap.max_recv_sge = SF_MAX_RECV_SGE;
	qp = ibv_create_qp(f->pd, &attr);
	assert_non_null(qp);
	assert_int_equal(to_sf_qp(qp)->sq.log_stride, SF_SLOT_LOG_MAX);
	assert_int_equal(to_sf_qp(qp)->rq.log_stride, SF_RQ_LOG_MAX);
	assert_int_equal(attr.cap.max_send_sge, SF_MAX_SEND_SGE);
	assert_int_equal(attr.cap.max_inline_data, SF_MAX_INLINE);
	assert_int_equal(attr.cap.max_recv_sge, SF_MAX_RECV_SGE);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void unsupported_queue_pairs_never_reach_the_kernel(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_init_attr attr = qp_attr(f);
	int before = kernel.created_qps;

	attr.qp_type = IBV_QPT_DRIVER;
	assert_null(ibv_create_qp(f->pd, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr = qp_attr(f);
	attr.cap.max_send_wr = 1025;
	assert_null(ibv_create_qp(f->pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr = qp_attr(f);
	attr.cap.max_recv_wr = UINT32_MAX;
	assert_null(ibv_create_qp(f->pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr = qp_attr(f);
	attr.cap.max_send_sge = UINT32_MAX;
	assert_null(ibv_create_qp(f->pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr = qp_attr(f);
	attr.cap.max_inline_data = SF_MAX_INLINE + 1;
	assert_null(ibv_create_qp(f->pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr = qp_attr(f);
	attr.send_cq = NULL;
	assert_null(ibv_create_qp(f->pd, &attr));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(kernel.created_qps, before);
}

static struct ibv_srq *new_srq(struct fixture *f)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 3, .max_sge = 2}};
	struct ibv_srq *srq = ibv_create_srq(f->pd, &attr);

	assert_non_null(srq);
	assert_int_equal(attr.attr.max_wr, 4);
	assert_int_equal(attr.attr.max_sge, 3);
	return srq;
}

static int post_srq_one(struct ibv_srq *srq, uint64_t wr_id)
{
	struct ibv_sge sge = {0x1000, 64, 5};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad = NULL;
	int err = ibv_post_srq_recv(srq, &wr, &bad);

	assert_ptr_equal(bad, err ? &wr : NULL);
	return err;
}

static const struct sf_rq_desc *srq_desc(struct ibv_srq *srq, uint32_t i)
{
	struct sf_srq *s = to_sf_srq(srq);

	return (void *)(s->ring + ((size_t)i << s->log_stride));
}

static void shared_receives_complete_in_any_order(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_init_attr attr = qp_attr(f);
	struct ibv_srq *srq = new_srq(f);
	struct ibv_qp *qp, *own = f->qp;
	struct ibv_recv_wr wr = {}, *bad;
	struct ibv_wc wc;
	int i;

	attr.srq = srq;
	qp = ibv_create_qp(f->pd, &attr);
	assert_non_null(qp);
	assert_int_equal(attr.cap.max_recv_wr, 0);
	assert_int_equal(modify(qp, IBV_QPS_INIT), 0);
	assert_int_equal(ibv_post_recv(qp, &wr, &bad), EINVAL);
	for (i = 0; i < 4; i++)
		assert_int_equal(post_srq_one(srq, 100 + i), 0);
	assert_int_equal(post_srq_one(srq, 104), ENOMEM);
	assert_int_equal(*to_sf_srq(srq)->doorbell, 4);
	assert_int_equal(srq_desc(srq, 2)->n_sge, 1);

	f->qp = qp;
	complete_recv(f, srq_desc(srq, 2)->cookie, 8, 0);
	assert_int_equal(ibv_poll_cq(f->recv_cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 102);
	assert_int_equal(wc.qp_num, qp->qp_num);
	/* One is free again; its request lies in the next slot. */
	assert_int_equal(post_srq_one(srq, 105), 0);
	assert_int_equal(post_srq_one(srq, 106), ENOMEM);
	complete_recv(f, srq_desc(srq, 0)->cookie, 8, 0);
	assert_int_equal(ibv_poll_cq(f->recv_cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 105);

	/* What was not polled is free when its QP has gone. */
	complete_recv(f, srq_desc(srq, 1)->cookie, 8, 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_poll_cq(f->recv_cq, 1, &wc), 0);
	assert_int_equal(post_srq_one(srq, 107), 0);
	assert_int_equal(post_srq_one(srq, 108), 0);
	assert_int_equal(post_srq_one(srq, 109), ENOMEM);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	f->qp = own;
}

static void a_shared_queue_changes_its_depth(void **state)
{
	struct fixture *f = *state;
	struct ibv_srq_attr to = {.max_wr = 9};
	struct ibv_srq *srq = new_srq(f);
	struct sf_srq *s = to_sf_srq(srq);
	uint64_t wr_id;
	uint32_t i;

	kernel.srq_head = 0;
	for (i = 0; i < 4; i++)
		assert_int_equal(post_srq_one(srq, 100 + i), 0);
	kernel.fail = ENOMEM;
	assert_int_equal(ibv_modify_srq(srq, &to, IBV_SRQ_MAX_WR), ENOMEM);
	assert_int_equal(post_srq_one(srq, 104), ENOMEM);
	assert_int_equal(ibv_modify_srq(srq, &to, IBV_SRQ_MAX_WR), 0);
	for (; i < 16; i++)
		assert_int_equal(post_srq_one(srq, 100 + i), 0);
	assert_int_equal(post_srq_one(srq, 116), ENOMEM);
	/* Each has a cookie of its own, and keeps it. */
	for (i = 0; i < 14; i++) {
		assert_true(sf_srq_retire(s, srq_desc(srq, i)->cookie, &wr_id));
		assert_int_equal(wr_id, 100 + i);
	}
	kernel.srq_head = 14;
	to.max_wr = 2;
	assert_int_equal(ibv_modify_srq(srq, &to, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(post_srq_one(srq, 116), ENOMEM);
	for (; i < 16; i++) {
		assert_true(sf_srq_retire(s, srq_desc(srq, i & 1)->cookie,
					  &wr_id));
		assert_int_equal(wr_id, 100 + i);
	}
	assert_int_equal(post_srq_one(srq, 116), 0);
	assert_int_equal(post_srq_one(srq, 117), 0);
	assert_int_equal(post_srq_one(srq, 118), ENOMEM);
	assert_false(sf_srq_retire(s, 16, &wr_id));
	to.max_wr = 0;
	assert_int_equal(ibv_modify_srq(srq, &to, IBV_SRQ_MAX_WR), EINVAL);
	to.max_wr = UINT32_MAX;
	assert_int_equal(ibv_modify_srq(srq, &to, IBV_SRQ_MAX_WR), EINVAL);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void datagrams_carry_their_address(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = f->send_cq,
		.recv_cq = f->recv_cq,
		.cap = qp_attr(f).cap,
		.qp_type = IBV_QPT_UD,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = f->pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_ah_attr ah_attr = {.port_num = 1};
	struct ibv_ah *ah = ibv_create_ah(f->pd, &ah_attr);
	struct ibv_send_wr wr = send_wr(1), *bad;
	struct sf_qp *own = f->sqp;
	struct ibv_qp_ex *qpx;
	struct ibv_qp *qp;
	uint64_t i;

	assert_non_null(ah);
	assert_null(sf_create_qp_ex(f->context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
	qp = sf_create_qp_ex(f->context, &attr);
	assert_non_null(qp);
	f->sqp = to_sf_qp(qp);
	assert_int_equal(modify(qp, IBV_QPS_RTS), 0);
	i = f->sqp->sq.head;

	wr.opcode = IBV_WR_RDMA_WRITE;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), EINVAL);
	wr = send_wr(1);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 0x123456;
	wr.wr.ud.remote_qkey = 0x11111111;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(slot(f, i)->remote_addr, 0x12345600004402);
	assert_int_equal(slot(f, i)->rkey, 0x11111111);

	qpx = ibv_qp_to_qp_ex(qp);
	assert_null(qpx->wr_rdma_write);
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_ud_addr(qpx, ah, 0x654321, 0x22222222);
	ibv_wr_set_sge(qpx, 1, 2, 3);
	assert_int_equal(ibv_wr_complete(qpx), 0);
	assert_int_equal(slot(f, i + 1)->remote_addr, 0x65432100004402);
	assert_int_equal(slot(f, i + 1)->rkey, 0x22222222);

	f->sqp = own;
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	kernel.fail = ENOMEM;
	assert_null(ibv_create_ah(f->pd, &ah_attr));
	assert_int_equal(errno, ENOMEM);
}

static struct {
	int allocs, frees;
	bool use_default, fail;
} custom;

static void *custom_alloc(struct ibv_pd *pd, void *pd_context, size_t size,
			  size_t alignment, uint64_t resource_type)
{
	(void)pd;
	(void)resource_type;
	assert_ptr_equal(pd_context, &custom);
	if (custom.use_default)
		return IBV_ALLOCATOR_USE_DEFAULT;
	if (custom.fail)
		return NULL;
	custom.allocs++;
	/* Not zeroed: that is the caller's business. */
	return memset(aligned_alloc(alignment,
				    (size + alignment - 1) & ~(alignment - 1)),
		      0xa5, size);
}

static void custom_free(struct ibv_pd *pd, void *pd_context, void *ptr,
			uint64_t resource_type)
{
	(void)pd;
	(void)resource_type;
	assert_ptr_equal(pd_context, &custom);
	custom.frees++;
	free(ptr);
}

static struct ibv_pd *new_parent(struct fixture *f, struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = f->pd,
		.td = td,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = custom_alloc,
		.free = custom_free,
		.pd_context = &custom,
	};

	memset(&custom, 0, sizeof(custom));
	return sf_alloc_parent_domain(f->context, &attr);
}

static void parent_domains_bring_an_allocator(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_init_attr attr = qp_attr(f);
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4}};
	struct ibv_pd *parent = new_parent(f, NULL);
	struct ibv_qp *qp;
	struct ibv_srq *srq;

	assert_non_null(parent);
	assert_int_equal(parent->handle, f->pd->handle);
	assert_int_equal(sf_dealloc_pd(f->pd), EBUSY);
	qp = ibv_create_qp(parent, &attr);
	assert_non_null(qp);
	assert_int_equal(custom.allocs, 2);
	assert_true(to_sf_qp(qp)->sq.lock.needed);
	assert_int_equal(to_sf_qp(qp)->sq.shadow[0].wr_id, 0);
	srq = ibv_create_srq(parent, &srq_attr);
	assert_non_null(srq);
	assert_int_equal(custom.allocs, 4);
	assert_int_equal(sf_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(custom.frees, 4);

	custom.use_default = true;
	qp = ibv_create_qp(parent, &attr);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(custom.frees, 4);
	custom.use_default = false;
	custom.fail = true;
	assert_null(ibv_create_qp(parent, &attr));
	assert_int_equal(errno, ENOMEM);
	assert_null(ibv_create_srq(parent, &srq_attr));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(sf_dealloc_pd(parent), 0);
}

static void a_thread_domain_needs_no_locks(void **state)
{
	struct fixture *f = *state;
	struct ibv_td_init_attr td_attr = {};
	struct ibv_td *td = sf_alloc_td(f->context, &td_attr);
	struct ibv_pd *parent = new_parent(f, td);
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 4,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = parent,
	};
	struct ibv_qp_init_attr attr = qp_attr(f);
	struct ibv_cq_ex *cq;
	struct ibv_qp *qp;

	assert_non_null(td);
	assert_non_null(parent);
	assert_int_equal(sf_dealloc_td(td), EBUSY);
	qp = ibv_create_qp(parent, &attr);
	assert_non_null(qp);
	assert_false(to_sf_qp(qp)->sq.lock.needed);
	assert_false(to_sf_qp(qp)->rq.lock.needed);
	cq = sf_create_cq_ex(f->context, &cq_attr);
	assert_non_null(cq);
	assert_false(to_sf_cq_ex(cq)->lock.needed);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(sf_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	assert_int_equal(sf_dealloc_pd(parent), 0);
	assert_int_equal(sf_dealloc_td(td), 0);
	cq_attr.parent_domain = f->pd;
	assert_null(sf_create_cq_ex(f->context, &cq_attr));
	assert_int_equal(errno, EINVAL);
}

static void bad_domains_are_refused(void **state)
{
	struct fixture *f = *state;
	struct ibv_parent_domain_init_attr attr = {.pd = f->pd};
	struct ibv_td_init_attr td_attr = {.comp_mask = 1};
	struct ibv_pd *parent = sf_alloc_parent_domain(f->context, &attr);

	assert_non_null(parent);
	attr.pd = parent;
	assert_null(sf_alloc_parent_domain(f->context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.pd = NULL;
	assert_null(sf_alloc_parent_domain(f->context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.pd = f->pd;
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	assert_null(sf_alloc_parent_domain(f->context, &attr));
	assert_int_equal(errno, EINVAL);
	attr.comp_mask = 1 << 9;
	assert_null(sf_alloc_parent_domain(f->context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_null(sf_alloc_td(f->context, &td_attr));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(sf_dealloc_pd(parent), 0);
}

static void shared_queues_are_checked_and_leave_nothing(void **state)
{
	struct fixture *f = *state;
	struct ibv_srq_init_attr attr = {
		.attr = {.max_wr = 1025, .max_sge = 1}};
	unsigned int refs = to_sf_context(f->context)->maps->refs;
	struct ibv_srq_init_attr_ex ex = {
		.attr = {.max_wr = 1, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_TM,
		.pd = f->pd,
	};
	struct ibv_srq *srq;

	assert_null(ibv_create_srq(f->pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr.attr.max_wr = 0;
	assert_null(ibv_create_srq(f->pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr.attr.max_wr = 1;
	attr.attr.max_sge = SF_MAX_RECV_SGE + 1;
	assert_null(ibv_create_srq(f->pd, &attr));
	assert_int_equal(errno, EINVAL);
	attr.attr.max_sge = 1;
	kernel.fail = ENOSPC;
	assert_null(ibv_create_srq(f->pd, &attr));
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(kernel.destroyed_srqs, 0);
	kernel.impossible_region = true;
	assert_null(ibv_create_srq(f->pd, &attr));
	assert_int_equal(errno, EPROTO);
	assert_int_equal(kernel.destroyed_srqs, 1);
	assert_null(sf_create_srq_ex(f->context, &ex));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(to_sf_context(f->context)->maps->refs, refs);

	srq = new_srq(f);
	kernel.fail = EBUSY;
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(to_sf_context(f->context)->maps->refs, refs);
}

static void a_failed_create_leaves_nothing_behind(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_init_attr attr = qp_attr(f);
	unsigned int refs = to_sf_context(f->context)->maps->refs;

	kernel.fail = ENOSPC;
	assert_null(ibv_create_qp(f->pd, &attr));
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(kernel.destroyed_qps, 0);

	kernel.impossible_region = true;
	assert_null(ibv_create_qp(f->pd, &attr));
	assert_int_equal(errno, EPROTO);
	assert_int_equal(kernel.destroyed_qps, 1);

	kernel.impossible_region = true;
	assert_null(ibv_create_cq(f->context, 8, NULL, NULL, 0));
	assert_int_equal(errno, EPROTO);
	assert_int_equal(kernel.destroyed_cqs, 1);
	assert_int_equal(to_sf_context(f->context)->maps->refs, refs);
}

static void a_refused_destroy_keeps_the_qp_alive(void **state)
{
	struct fixture *f = *state;
	struct ibv_send_wr wr = send_wr(5);
	struct ibv_wc wc;

	assert_int_equal(post_one(f, &wr), 0);
	kernel.fail = EBUSY;
	assert_int_equal(ibv_destroy_qp(f->qp), EBUSY);
	complete_send(f, f->sqp->sq.tail, SF_OP_SEND, 0);
	assert_int_equal(ibv_poll_cq(f->send_cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 5);
}

static struct sf_qp *find_qp(const struct sf_cq *cq, uint32_t qpn)
{
	const struct sf_cq_link *link = sf_cq_find(&cq->qps, qpn);

	return link ? link->qp : NULL;
}

static void qps_that_share_a_bucket_are_told_apart(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_init_attr attr = qp_attr(f);
	struct sf_cq *cq = to_sf_cq(f->send_cq);
	struct ibv_qp *qp[3];
	int i;

	for (i = 0; i < 3; i++) {
		kernel.qpn = f->qp->qp_num + (i + 1) * (cq->qps.mask + 1);
		qp[i] = ibv_create_qp(f->pd, &attr);
		assert_non_null(qp[i]);
	}
	assert_ptr_equal(find_qp(cq, qp[1]->qp_num), to_sf_qp(qp[1]));
	assert_int_equal(ibv_destroy_qp(qp[1]), 0);
	for (i = 0; i < 3; i += 2)
		assert_ptr_equal(find_qp(cq, qp[i]->qp_num), to_sf_qp(qp[i]));
	assert_null(find_qp(cq, f->qp->qp_num + 2 * (cq->qps.mask + 1)));
	assert_int_equal(ibv_destroy_qp(qp[0]), 0);
	assert_int_equal(ibv_destroy_qp(qp[2]), 0);
	assert_ptr_equal(find_qp(cq, f->qp->qp_num), f->sqp);
}

static void the_hour_is_told_where_the_clock_is_known(void **state)
{
	struct fixture *f = *state;
	struct sf_context *ctx = to_sf_context(f->context);
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4,
		.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct timespec before, now;
	struct sf_cqe cqe = {0};
	struct ibv_cq_ex *cq;

	assert_null(sf_create_cq_ex(f->context, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(f->vctx->query_rt_values(f->context, &values),
			 EOPNOTSUPP);
	ctx->clock_is_monotonic = true;
	clock_gettime(CLOCK_MONOTONIC, &before);
	assert_int_equal(f->vctx->query_rt_values(f->context, &values), 0);
	assert_int_equal(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	assert_true(values.raw_clock.tv_sec >= before.tv_sec);
	values.comp_mask = 2;
	assert_int_equal(f->vctx->query_rt_values(f->context, &values),
			 EOPNOTSUPP);

	cq = sf_create_cq_ex(f->context, &attr);
	assert_non_null(cq);
	assert_null(cq->read_completion_ts);
	cqe.timestamp = before.tv_sec * 1000000000ULL + before.tv_nsec;
	to_sf_cq_ex(cq)->cur = &cqe;
	clock_gettime(CLOCK_REALTIME, &now);
	/* The same moment by the other clock, within an hour. */
	assert_true(ibv_wc_read_completion_wallclock_ns(cq) / 1000000000 /
				    3600 -
			    now.tv_sec / 3600 + 1 <=
		    2);
	assert_int_equal(sf_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

/* ---- XRC ---- */

static struct ibv_xrcd *open_domain(struct fixture *f)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
	};
	struct ibv_xrcd *xrcd = sf_open_xrcd(f->context, &attr);

	assert_non_null(xrcd);
	return xrcd;
}

static void an_xrc_receive_finds_its_srq_without_its_qp(void **state)
{
	struct fixture *f = *state;
	struct ibv_xrcd *xrcd = open_domain(f);
	struct ibv_srq_init_attr_ex attr = {
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = f->pd,
		.xrcd = xrcd,
		.cq = f->recv_cq,
		.attr = {.max_wr = 4, .max_sge = 1},
	};
	struct ibv_srq *srq = sf_create_srq_ex(f->context, &attr), *plain;
	struct sf_cqe cqe = {.srqn = XRC_SRQN, .qpn = 0x999, .src_qpn = 5};
	struct ibv_wc wc[2];
	uint32_t num;

	assert_non_null(srq);
	assert_int_equal(sf_get_srq_num(srq, &num), 0);
	assert_int_equal(num, XRC_SRQN);
	plain = new_srq(f);
	assert_int_equal(sf_get_srq_num(plain, &num), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_srq(plain), 0);

	assert_int_equal(post_srq_one(srq, 100), 0);
	assert_int_equal(post_srq_one(srq, 101), 0);
	cqe.wr = srq_desc(srq, 1)->cookie;
	put_cqe(to_sf_cq(f->recv_cq), &cq_producer[1], cqe, SF_CQE_RECV, 0,
		SF_CQE_XRC);
	/* Of no SRQ that is here, and of no QP: nothing. */
	cqe.srqn = XRC_SRQN + 1;
	put_cqe(to_sf_cq(f->recv_cq), &cq_producer[1], cqe, SF_CQE_RECV, 0,
		SF_CQE_XRC);
	cqe.srqn = XRC_SRQN;
	put_cqe(to_sf_cq(f->recv_cq), &cq_producer[1], cqe, SF_CQE_RECV, 0, 0);
	assert_int_equal(ibv_poll_cq(f->recv_cq, 2, wc), 1);
	assert_int_equal(wc[0].wr_id, 101);
	assert_int_equal(wc[0].qp_num, 0x999);
	assert_int_equal(wc[0].src_qp, 5);
	/* What comes after its end is dropped. */
	put_cqe(to_sf_cq(f->recv_cq), &cq_producer[1], cqe, SF_CQE_RECV, 0,
		SF_CQE_XRC);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_poll_cq(f->recv_cq, 2, wc), 0);
	attr.comp_mask &= ~IBV_SRQ_INIT_ATTR_CQ;
	assert_null(sf_create_srq_ex(f->context, &attr));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(sf_close_xrcd(xrcd), 0);
}

static void an_xrc_sender_names_the_srq(void **state)
{
	struct fixture *f = *state;
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_SEND,
		.send_cq = f->send_cq,
		.pd = f->pd,
		.cap = {.max_send_wr = 4, .max_send_sge = 1},
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = sf_create_qp_ex(f->context, &attr);
	struct ibv_send_wr wr = send_wr(5), *bad;
	struct ibv_recv_wr recv = {}, *bad_recv;
	struct ibv_qp_ex *qpx;
	struct sf_sq *sq;

	assert_non_null(qp);
	sq = &to_sf_qp(qp)->sq;
	assert_int_equal(attr.cap.max_recv_wr, 0);
	modify(qp, IBV_QPS_RTS);
	wr.num_sge = 0;
	wr.qp_type.xrc.remote_srqn = 0x1234;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(((struct sf_wqe *)sq->ring)->xrc_srqn, 0x1234);
	qpx = ibv_qp_to_qp_ex(qp);
	ibv_wr_start(qpx);
	ibv_wr_send(qpx);
	ibv_wr_set_xrc_srqn(qpx, 0x5678);
	assert_int_equal(ibv_wr_complete(qpx), 0);
	assert_int_equal(
		((struct sf_wqe *)(sq->ring + (1 << sq->log_stride)))->xrc_srqn,
		0x5678);
	assert_int_equal(ibv_post_recv(qp, &recv, &bad_recv), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void an_xrc_target_takes_no_work_requests(void **state)
{
	struct fixture *f = *state;
	struct ibv_xrcd *xrcd = open_domain(f);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};
	struct ibv_qp_open_attr open = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE,
		.xrcd = xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_qp *qp[2];
	struct ibv_send_wr wr = send_wr(5), *bad;
	struct ibv_recv_wr recv = {}, *bad_recv;
	int i;

	qp[0] = sf_create_qp_ex(f->context, &attr);
	assert_non_null(qp[0]);
	open.qp_num = qp[0]->qp_num;
	qp[1] = sf_open_qp(f->context, &open);
	assert_non_null(qp[1]);
	for (i = 0; i < 2; i++) {
		assert_int_equal(modify(qp[i], IBV_QPS_RTS), 0);
		assert_int_equal(sf_post_send(qp[i], &wr, &bad), EINVAL);
		assert_ptr_equal(bad, &wr);
		assert_int_equal(sf_post_recv(qp[i], &recv, &bad_recv), EINVAL);
		kernel.fail = EBUSY;
		assert_int_equal(sf_destroy_qp(qp[i]), EBUSY);
		assert_int_equal(sf_destroy_qp(qp[i]), 0);
	}
	kernel.fail = EINVAL;
	assert_null(sf_open_qp(f->context, &open));
	assert_int_equal(errno, EINVAL);
	attr.comp_mask = 0;
	assert_null(sf_create_qp_ex(f->context, &attr));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(sf_close_xrcd(xrcd), 0);
}

static void only_our_devices_match(void **state)
{
	struct verbs_sysfs_dev dev = {};

	(void)state;
	assert_false(kernel.driver->match_device(&dev));
	dev.match = kernel.driver->match_table;
	assert_true(kernel.driver->match_device(&dev));
	assert_int_equal(kernel.driver->match_min_abi_version, 1);
	assert_int_equal(kernel.driver->match_max_abi_version, 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define CASE_NOTIFY(name) \
	cmocka_unit_test_setup_teardown(name, setup_notify, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_send_fills_its_slot_and_rings_once),
		CASE(a_write_carries_address_and_key),
		CASE(atomics_put_operands_where_the_device_reads_them),
		CASE(windows_are_bound_and_invalidated_by_slots),
		CASE(inline_data_is_gathered_into_the_slot),
		CASE(inline_data_is_bounded_by_its_sum),
		CASE(sq_sig_all_signals_every_request),
		CASE(a_chain_is_posted_up_to_the_bad_request),
		CASE(too_many_sges_and_odd_opcodes_are_refused),
		CASE(a_full_queue_says_enomem_until_a_completion_is_polled),
		CASE(a_signaled_completion_frees_the_unsignaled_before_it),
		CASE(states_decide_what_may_be_posted),
		CASE(a_batch_becomes_visible_as_a_whole),
		CASE_NOTIFY(
			a_notify_follows_the_store_once_and_outside_the_lock),
		CASE(the_builder_makes_the_slots_that_post_send_makes),
		CASE(an_aborted_session_posts_nothing),
		CASE(a_session_with_an_error_posts_nothing_and_unlocks),
		CASE(a_builder_offers_what_was_asked_for_and_no_more),
		CASE(a_receive_becomes_a_descriptor_and_moves_the_doorbell),
		CASE(receives_complete_across_the_wrap_of_the_cookie),
		CASE(an_inline_payload_lands_in_the_buffers_of_the_receive),
		CASE(a_completion_of_a_destroyed_qp_is_consumed_in_silence),
		CASE(impossible_completions_are_dropped_and_good_ones_kept),
		CASE(reset_forgets_the_old_life_and_its_completions),
		CASE(a_failed_reset_changes_nothing),
		CASE(errors_carry_status_and_syndrome),
		CASE(polling_takes_no_more_than_asked_and_stores_one_index),
		CASE(arming_names_index_and_mode_and_rings),
		CASE_NOTIFY(arming_names_index_and_mode_and_rings),
		CASE(resize_keeps_outstanding_completions),
		CASE(cq_sizes_are_checked_and_rounded),
		CASE(extended_polling_reads_every_field),
		CASE(extended_cqs_refuse_what_they_cannot_do),
		CASE(reported_capabilities_are_usable),
		CASE(the_largest_queue_pair_fits_the_format),
		CASE(unsupported_queue_pairs_never_reach_the_kernel),
		CASE(a_failed_create_leaves_nothing_behind),
		CASE(a_refused_destroy_keeps_the_qp_alive),
		CASE(shared_receives_complete_in_any_order),
		CASE(a_shared_queue_changes_its_depth),
		CASE(parent_domains_bring_an_allocator),
		CASE(a_thread_domain_needs_no_locks),
		CASE(bad_domains_are_refused),
		CASE(datagrams_carry_their_address),
		CASE(shared_queues_are_checked_and_leave_nothing),
		CASE(qps_that_share_a_bucket_are_told_apart),
		CASE(an_xrc_receive_finds_its_srq_without_its_qp),
		CASE(the_hour_is_told_where_the_clock_is_known),
		CASE(an_xrc_sender_names_the_srq),
		CASE(an_xrc_target_takes_no_work_requests),
		cmocka_unit_test(only_our_devices_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
