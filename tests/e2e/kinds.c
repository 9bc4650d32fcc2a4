// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every kind of memory that verbs know: windows, re-registered regions, on
 * demand, null, the device's own, imported; and what is not one of them.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "pair.h"

#define PAGE 4096
#define LEN (4 * PAGE)
#define ALL (ALL_ACCESS | IBV_ACCESS_MW_BIND)

static int cases;

/* Two connected QPs, and memory to write from and to read into. */
struct pair {
	struct end e;
	struct ibv_cq *cq;
	struct ibv_qp *a, *b;
	struct ibv_mr *own;
	char *mem;
};

static char *pages(size_t len, int prot)
{
	char *p = mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static void pair_open(struct pair *p)
{
	int i;

	end_open(&p->e);
	p->cq = new_cq(&p->e, 64, NULL);
	p->a = new_qp(&p->e, p->cq, p->cq, 16);
	p->b = new_qp(&p->e, p->cq, p->cq, 16);
	connect_qp(&p->e, p->a, p->b->qp_num);
	connect_qp(&p->e, p->b, p->a->qp_num);
	p->mem = pages(LEN, PROT_READ | PROT_WRITE);
	for (i = 0; i < LEN; i++)
		p->mem[i] = (char)(i * 7 + i / 256);
	CHECK(p->own = ibv_reg_mr(p->e.pd, p->mem, LEN, ALL_ACCESS));
}

static void pair_close(struct pair *p)
{
	CHECK(!ibv_dereg_mr(p->own));
	CHECK(!ibv_destroy_qp(p->a));
	CHECK(!ibv_destroy_qp(p->b));
	CHECK(!ibv_destroy_cq(p->cq));
	end_close(&p->e);
}

static void again(struct pair *p)
{
	struct ibv_wc wc;

	set_state(p->a, IBV_QPS_RESET);
	set_state(p->b, IBV_QPS_RESET);
	while (ibv_poll_cq(p->cq, 1, &wc))
		;
	connect_qp(&p->e, p->a, p->b->qp_num);
	connect_qp(&p->e, p->b, p->a->qp_num);
}

static struct ibv_wc take(struct pair *p)
{
	double end = seconds() + 20;
	struct ibv_wc wc;

	while (!ibv_poll_cq(p->cq, 1, &wc))
		CHECK(seconds() < end);
	return wc;
}

static struct ibv_wc post(struct pair *p, struct ibv_qp *qp,
			  struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->send_flags |= IBV_SEND_SIGNALED;
	CHECK(!ibv_post_send(qp, wr, &bad));
	return take(p);
}

/* a reads or writes @len bytes at @addr of b: how did it end? */
static enum ibv_wc_status rdma(struct pair *p, enum ibv_wr_opcode op,
			       uint64_t addr, uint32_t rkey, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)p->mem, len, p->own->lkey};
	struct ibv_send_wr wr = {
		.opcode = op,
		.sg_list = &sge,
		.num_sge = 1,
	};

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 3;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	return post(p, p->a, &wr).status;
}

#define WRITE IBV_WR_RDMA_WRITE
#define READ IBV_WR_RDMA_READ

static void refused(struct pair *p, enum ibv_wr_opcode op, uint64_t addr,
		    uint32_t rkey, uint32_t len)
{
	CHECK(rdma(p, op, addr, rkey, len) == IBV_WC_REM_ACCESS_ERR);
	again(p);
}

static void works(struct pair *p, enum ibv_wr_opcode op, uint64_t addr,
		  uint32_t rkey, uint32_t len)
{
	CHECK(rdma(p, op, addr, rkey, len) == IBV_WC_SUCCESS);
}

/* ---- windows --------------------------------------------------------- */

static void window_type_1(struct pair *p)
{
	char *buf = pages(LEN, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr = ibv_reg_mr(p->e.pd, buf, LEN, ALL);
	struct ibv_mw_bind bind = {
		.wr_id = 77,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {mr, (uintptr_t)buf + 100, 200,
			      IBV_ACCESS_REMOTE_WRITE},
	};
	struct ibv_mw *mw;
	struct ibv_wc wc;
	uint32_t old;

	CHECK(mr);
	CHECK(mw = ibv_alloc_mw(p->e.pd, IBV_MW_TYPE_1));
	old = mw->rkey;
	CHECK(!ibv_bind_mw(p->b, mw, &bind));
	wc = take(p);
	CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_BIND_MW);
	CHECK(wc.wr_id == 77 && mw->rkey != old);
	works(p, WRITE, (uintptr_t)buf + 100, mw->rkey, 200);
	CHECK(!memcmp(buf + 100, p->mem, 200) && !buf[99] && !buf[300]);
	refused(p, READ, (uintptr_t)buf + 100, mw->rkey, 8);
	refused(p, WRITE, (uintptr_t)buf + 99, mw->rkey, 8);
	refused(p, WRITE, (uintptr_t)buf + 100, old, 8);
	CHECK(ibv_dereg_mr(mr) == EBUSY);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   ALL) == IBV_REREG_MR_ERR_CMD);
	/* Nothing: closes it. */
	bind.bind_info.length = 0;
	old = mw->rkey;
	CHECK(!ibv_bind_mw(p->b, mw, &bind));
	CHECK(take(p).status == IBV_WC_SUCCESS);
	refused(p, WRITE, (uintptr_t)buf + 100, old, 8);
	refused(p, WRITE, (uintptr_t)buf + 100, mw->rkey, 8);
	CHECK(!ibv_dereg_mr(mr));
	/* More than there is. */
	CHECK(mr = ibv_reg_mr(p->e.pd, buf, PAGE, ALL));
	bind.bind_info.mr = mr;
	bind.bind_info.length = PAGE;
	CHECK(!ibv_bind_mw(p->b, mw, &bind));
	CHECK(take(p).status == IBV_WC_MW_BIND_ERR);
	again(p);
	CHECK(!ibv_dealloc_mw(mw));
	CHECK(!ibv_dereg_mr(mr));
	munmap(buf, LEN);
	cases++;
}

static struct ibv_wc bind_2(struct pair *p, struct ibv_mw *mw, uint32_t rkey,
			    struct ibv_mr *mr, uint64_t addr, uint64_t len,
			    int access)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = {mw, rkey, {mr, addr, len, access}},
	};

	return post(p, p->b, &wr);
}

static void window_type_2(struct pair *p)
{
	char *buf = pages(LEN, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr = ibv_reg_mr(p->e.pd, buf, LEN, ALL);
	struct ibv_send_wr inv = {.opcode = IBV_WR_LOCAL_INV};
	struct ibv_sge sge = {(uintptr_t)buf + PAGE, 64, mr->lkey};
	struct ibv_recv_wr recv = {.wr_id = 5, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;
	struct ibv_qp *third;
	struct ibv_mw *mw;
	struct ibv_wc wc, wc2;
	uint32_t key;

	CHECK(mw = ibv_alloc_mw(p->e.pd, IBV_MW_TYPE_2));
	key = ibv_inc_rkey(mw->rkey);
	wc = bind_2(p, mw, key, mr, (uintptr_t)buf + 64, 64,
		    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED);
	CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_BIND_MW);
	works(p, WRITE, 0, key, 64);
	CHECK(!memcmp(buf + 64, p->mem, 64));
	refused(p, WRITE, 1, key, 64);
	/* Open means not to be bound. */
	CHECK(bind_2(p, mw, key, mr, (uintptr_t)buf, 64,
		     IBV_ACCESS_REMOTE_WRITE)
		      .status == IBV_WC_MW_BIND_ERR);
	again(p);
	/* To another QP of the domain it is closed. */
	third = p->b;
	p->b = new_qp(&p->e, p->cq, p->cq, 16);
	again(p);
	refused(p, WRITE, 0, key, 8);
	CHECK(!ibv_destroy_qp(p->b));
	p->b = third;
	again(p);
	inv.invalidate_rkey = key;
	wc = post(p, p->b, &inv);
	CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_LOCAL_INV);
	refused(p, WRITE, 0, key, 8);
	CHECK(post(p, p->b, &inv).status == IBV_WC_MW_BIND_ERR);
	again(p);
	/* The peer closes it. */
	key = ibv_inc_rkey(key);
	CHECK(bind_2(p, mw, key, mr, (uintptr_t)buf, 64, IBV_ACCESS_REMOTE_READ)
		      .status == IBV_WC_SUCCESS);
	works(p, READ, (uintptr_t)buf, key, 8);
	CHECK(!ibv_post_recv(p->b, &recv, &bad));
	inv.opcode = IBV_WR_SEND_WITH_INV;
	inv.invalidate_rkey = key;
	wc = post(p, p->a, &inv);
	wc2 = take(p);
	if (wc.opcode != IBV_WC_RECV) {
		struct ibv_wc other = wc;

		wc = wc2;
		wc2 = other;
	}
	CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV);
	CHECK(wc.wc_flags == IBV_WC_WITH_INV && wc.invalidated_rkey == key);
	CHECK(wc2.status == IBV_WC_SUCCESS && wc2.opcode == IBV_WC_SEND);
	refused(p, READ, (uintptr_t)buf, key, 8);
	/* Its end closes it, too. */
	key = ibv_inc_rkey(key);
	CHECK(bind_2(p, mw, key, mr, (uintptr_t)buf, 64, IBV_ACCESS_REMOTE_READ)
		      .status == IBV_WC_SUCCESS);
	CHECK(!ibv_dealloc_mw(mw));
	refused(p, READ, (uintptr_t)buf, key, 8);
	CHECK(!ibv_dereg_mr(mr));
	errno = 0;
	CHECK(!ibv_alloc_mw(p->e.pd, IBV_MW_TYPE_2 + 1) && errno == EINVAL);
	munmap(buf, LEN);
	cases++;
}

/* ---- re-registration ------------------------------------------------- */

static void reregistration(struct pair *p)
{
	char *one = pages(LEN, PROT_READ | PROT_WRITE);
	char *two = pages(LEN, PROT_READ | PROT_WRITE);
	char *fixed = pages(LEN, PROT_READ);
	struct ibv_mr *mr = ibv_reg_mr(p->e.pd, one, LEN, ALL_ACCESS);
	uint32_t key = mr->rkey;
	struct ibv_pd *pd;

	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, two,
			    PAGE, 0));
	CHECK(mr->rkey == key && mr->addr == two && mr->length == PAGE);
	works(p, WRITE, (uintptr_t)two, key, 64);
	CHECK(!memcmp(two, p->mem, 64));
	refused(p, WRITE, (uintptr_t)one, key, 8);
	refused(p, WRITE, (uintptr_t)two + PAGE, key, 8);
	/* The old pages are ordinary memory again. */
	CHECK(!madvise(one, LEN, MADV_DONTNEED));
	munmap(one, LEN);
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			    IBV_ACCESS_REMOTE_READ));
	refused(p, WRITE, (uintptr_t)two, key, 8);
	works(p, READ, (uintptr_t)two, key, 8);
	/* All at once. */
	CHECK(pd = ibv_alloc_pd(p->e.ctx));
	CHECK(!ibv_rereg_mr(mr,
			    IBV_REREG_MR_CHANGE_TRANSLATION |
				    IBV_REREG_MR_CHANGE_PD |
				    IBV_REREG_MR_CHANGE_ACCESS,
			    pd, two + PAGE, PAGE, ALL_ACCESS));
	CHECK(ibv_dealloc_pd(pd) == EBUSY);
	refused(p, READ, (uintptr_t)two + PAGE, key, 8);
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, p->e.pd, NULL, 0, 0));
	CHECK(!ibv_dealloc_pd(pd));
	works(p, WRITE, (uintptr_t)two + PAGE, key, 8);
	/* What may not be written is not registered for it. */
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, fixed,
			   PAGE, 0) == IBV_REREG_MR_ERR_CMD);
	CHECK(errno == EFAULT);
	CHECK(!ibv_rereg_mr(mr,
			    IBV_REREG_MR_CHANGE_TRANSLATION |
				    IBV_REREG_MR_CHANGE_ACCESS,
			    NULL, fixed, PAGE, IBV_ACCESS_REMOTE_READ));
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   IBV_ACCESS_LOCAL_WRITE) == IBV_REREG_MR_ERR_CMD);
	CHECK(errno == EFAULT);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   IBV_ACCESS_REMOTE_WRITE) == IBV_REREG_MR_ERR_CMD);
	CHECK(errno == EINVAL);
	works(p, READ, (uintptr_t)fixed, key, 8);
	CHECK(!ibv_dereg_mr(mr));
	munmap(two, LEN);
	munmap(fixed, LEN);
	cases++;
}

/* ---- on demand ------------------------------------------------------- */

#define ON_DEMAND (ALL | IBV_ACCESS_ON_DEMAND)

static void on_demand(struct pair *p)
{
	char *buf = pages(LEN, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr;
	struct ibv_sge sge;
	char byte;

	/* The second page comes later, the third is not for writing. */
	munmap(buf + PAGE, PAGE);
	mprotect(buf + 2 * PAGE, PAGE, PROT_READ);
	mprotect(buf + 3 * PAGE, PAGE, PROT_NONE);
	CHECK(mr = ibv_reg_mr(p->e.pd, buf, LEN, ON_DEMAND));
	works(p, WRITE, (uintptr_t)buf, mr->rkey, PAGE);
	CHECK(!memcmp(buf, p->mem, PAGE));
	CHECK(rdma(p, WRITE, (uintptr_t)buf + PAGE, mr->rkey, 8) ==
	      IBV_WC_REM_OP_ERR);
	again(p);
	CHECK(rdma(p, WRITE, (uintptr_t)buf + 2 * PAGE - 8, mr->rkey, 16) ==
	      IBV_WC_REM_OP_ERR);
	again(p);
	CHECK(rdma(p, WRITE, (uintptr_t)buf + 2 * PAGE, mr->rkey, 8) ==
	      IBV_WC_REM_OP_ERR);
	again(p);
	byte = buf[2 * PAGE];
	CHECK(!byte);
	works(p, READ, (uintptr_t)buf + 2 * PAGE, mr->rkey, 8);
	CHECK(rdma(p, READ, (uintptr_t)buf + 3 * PAGE, mr->rkey, 8) ==
	      IBV_WC_REM_OP_ERR);
	again(p);
	CHECK(mmap(buf + PAGE, PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		   0) == buf + PAGE);
	works(p, WRITE, (uintptr_t)buf + PAGE, mr->rkey, 8);
	memset(buf, 0, 8);
	works(p, IBV_WR_ATOMIC_FETCH_AND_ADD, (uintptr_t)buf, mr->rkey, 8);
	CHECK(buf[0] == 3);

	sge = (struct ibv_sge){(uintptr_t)buf, 2 * PAGE, mr->lkey};
	CHECK(!ibv_advise_mr(p->e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
			     IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
	CHECK(!ibv_advise_mr(p->e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge,
			     1));
	sge.length = 3 * PAGE;
	CHECK(ibv_advise_mr(p->e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0,
			    &sge, 1) == EFAULT);
	CHECK(!ibv_advise_mr(p->e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, 0,
			     &sge, 1));
	sge.length = 5 * PAGE;
	CHECK(ibv_advise_mr(p->e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge,
			    1) == EFAULT);
	CHECK(ibv_advise_mr(p->e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 2, &sge,
			    1) == EINVAL);
	CHECK(ibv_advise_mr(p->e.pd, 7, 0, &sge, 1) == EOPNOTSUPP);
	sge.lkey ^= 1;
	CHECK(ibv_advise_mr(p->e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge,
			    1) == ENOENT);
	sge = (struct ibv_sge){(uintptr_t)p->mem, 8, p->own->lkey};
	CHECK(ibv_advise_mr(p->e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge,
			    1) == EINVAL);
	CHECK(!ibv_dereg_mr(mr));
	munmap(buf, LEN);
	cases++;
}

/* All of the address space, also what is mapped later. */
static void implicit(struct pair *p)
{
	struct ibv_mr *mr;
	char *buf;

	CHECK(mr = ibv_reg_mr(p->e.pd, NULL, SIZE_MAX, ON_DEMAND));
	buf = pages(LEN, PROT_READ | PROT_WRITE);
	works(p, WRITE, (uintptr_t)buf, mr->rkey, LEN);
	CHECK(!memcmp(buf, p->mem, LEN));
	munmap(buf, LEN);
	CHECK(rdma(p, WRITE, (uintptr_t)buf, mr->rkey, 8) == IBV_WC_REM_OP_ERR);
	again(p);
	CHECK(rdma(p, READ, 0, mr->rkey, 8) == IBV_WC_REM_OP_ERR);
	again(p);
	CHECK(!ibv_dereg_mr(mr));
	errno = 0;
	CHECK(!ibv_reg_mr(p->e.pd, NULL, SIZE_MAX, ALL) && errno == EFAULT);
	cases++;
}

/* A local buffer that is not there: its owner's own fault. */
static void local_faults(struct pair *p)
{
	char *buf = pages(LEN, PROT_READ);
	struct ibv_mr *mr = ibv_reg_mr(p->e.pd, buf, LEN, ON_DEMAND);
	struct ibv_sge sge = {(uintptr_t)buf, 8, mr->lkey};
	struct ibv_send_wr wr = {
		.opcode = READ,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = {(uintptr_t)p->mem, p->own->rkey},
	};

	CHECK(post(p, p->a, &wr).status == IBV_WC_LOC_PROT_ERR);
	again(p);
	wr.opcode = WRITE; /* reads it */
	CHECK(post(p, p->a, &wr).status == IBV_WC_SUCCESS);
	munmap(buf, LEN);
	CHECK(post(p, p->a, &wr).status == IBV_WC_LOC_PROT_ERR);
	again(p);
	CHECK(!ibv_dereg_mr(mr));
	cases++;
}

/* ---- null ------------------------------------------------------------ */

static void null_region(struct pair *p)
{
	char *buf = pages(LEN, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr = ibv_reg_mr(p->e.pd, buf, LEN, ALL_ACCESS);
	struct ibv_mr *null = ibv_alloc_null_mr(p->e.pd);
	struct ibv_sge sge = {~0ull - 1000, 500, 0};
	struct ibv_send_wr wr = {
		.opcode = WRITE,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = {(uintptr_t)buf, mr->rkey},
	};
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(null && !null->rkey && null->length == SIZE_MAX);
	sge.lkey = null->lkey;
	memset(buf, 0x77, LEN);
	CHECK(post(p, p->a, &wr).status == IBV_WC_SUCCESS);
	CHECK(!buf[0] && !buf[499] && buf[500] == 0x77);
	wr.opcode = READ;
	CHECK(post(p, p->a, &wr).status == IBV_WC_SUCCESS);
	/* A message of any size may come for nobody. */
	sge = (struct ibv_sge){0, 12, null->lkey};
	CHECK(!ibv_post_recv(p->b, &recv, &bad));
	sge = (struct ibv_sge){(uintptr_t)p->mem, 12, p->own->lkey};
	wr.opcode = IBV_WR_SEND;
	CHECK(post(p, p->a, &wr).status == IBV_WC_SUCCESS);
	CHECK(take(p).status == IBV_WC_SUCCESS);
	CHECK(!ibv_dereg_mr(null));
	CHECK(!ibv_dereg_mr(mr));
	munmap(buf, LEN);
	cases++;
}

/* As much as a message and a list may be, and nothing at all. */
static void sizes(struct pair *p)
{
	struct ibv_qp_init_attr init = {
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.cap = {4, 4, 30, 1, 0},
		.qp_type = IBV_QPT_RC,
	};
	char *buf = pages(LEN, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr = ibv_reg_mr(p->e.pd, buf, LEN, ALL_ACCESS);
	struct ibv_mr *all = ibv_reg_mr(p->e.pd, NULL, SIZE_MAX, ON_DEMAND);
	struct ibv_mr *null = ibv_alloc_null_mr(p->e.pd);
	struct ibv_qp *few = p->a;
	struct ibv_sge sge[30];
	struct ibv_send_wr wr = {
		.opcode = WRITE,
		.sg_list = sge,
		.num_sge = 30,
		.wr.rdma = {(uintptr_t)buf, mr->rkey},
	};
	int i;

	CHECK(p->a = ibv_create_qp(p->e.pd, &init));
	again(p);
	for (i = 0; i < 30; i++) {
		sge[i] = (struct ibv_sge){(uintptr_t)p->mem + i, 100 + i,
					  p->own->lkey};
		if (i % 3 == 1)
			sge[i].lkey = null->lkey;
		if (i % 3 == 2)
			sge[i].lkey = all->lkey;
	}
	memset(buf, 0x77, LEN);
	CHECK(post(p, p->a, &wr).status == IBV_WC_SUCCESS);
	CHECK(!memcmp(buf, p->mem, 100) && !buf[100] && !buf[200]);
	CHECK(!memcmp(buf + 201, p->mem + 2, 102));
	/* Nothing is nowhere: no key is looked at. */
	for (i = 0; i < 30; i++)
		sge[i] = (struct ibv_sge){0, 0, 0xdead};
	wr.wr.rdma.rkey = 0xbeef;
	CHECK(post(p, p->a, &wr).status == IBV_WC_SUCCESS);
	wr.opcode = READ;
	CHECK(post(p, p->a, &wr).status == IBV_WC_SUCCESS);
	/* 2^31 bytes, and one more. */
	wr.wr.rdma.remote_addr = 1ull << 32;
	wr.wr.rdma.rkey = all->rkey;
	sge[29] = (struct ibv_sge){0, 1u << 31, null->lkey};
	CHECK(post(p, p->a, &wr).status == IBV_WC_SUCCESS);
	sge[28] = (struct ibv_sge){0, 1, null->lkey};
	CHECK(post(p, p->a, &wr).status == IBV_WC_LOC_LEN_ERR);
	CHECK(!ibv_destroy_qp(p->a));
	p->a = few;
	again(p);
	CHECK(!ibv_dereg_mr(null));
	CHECK(!ibv_dereg_mr(all));
	CHECK(!ibv_dereg_mr(mr));
	munmap(buf, LEN);
	cases++;
}

/* ---- device memory --------------------------------------------------- */

static void device_memory(struct pair *p)
{
	struct ibv_device_attr_ex dev;
	struct ibv_alloc_dm_attr attr = {.length = PAGE + 4};
	struct ibv_mr *mr;
	struct ibv_dm *dm;
	uint64_t value = 40;
	char back[64];

	CHECK(!ibv_query_device_ex(p->e.ctx, NULL, &dev));
	CHECK(dev.max_dm_size >= attr.length);
	CHECK(dm = ibv_alloc_dm(p->e.ctx, &attr));
	CHECK(mr = ibv_reg_dm_mr(p->e.pd, dm, 8, PAGE - 8,
				 ALL_ACCESS | IBV_ACCESS_ZERO_BASED));
	CHECK(ibv_free_dm(dm) == EBUSY);
	works(p, WRITE, 0, mr->rkey, 64);
	CHECK(!ibv_memcpy_from_dm(back, dm, 8, 64));
	CHECK(!memcmp(back, p->mem, 64));
	CHECK(!ibv_memcpy_to_dm(dm, 72, &value, 8));
	works(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 64, mr->rkey, 8);
	CHECK(!memcmp(p->mem, &value, 8));
	CHECK(!ibv_memcpy_from_dm(&value, dm, 72, 8) && value == 43);
	refused(p, WRITE, PAGE - 8, mr->rkey, 8);
	CHECK(ibv_memcpy_from_dm(back, dm, PAGE + 4, 4) == EFAULT);
	CHECK(ibv_memcpy_to_dm(dm, 1, back, 4) == EINVAL);
	CHECK(!ibv_memcpy_to_dm(dm, PAGE, back, 4));
	errno = 0;
	CHECK(!ibv_reg_dm_mr(p->e.pd, dm, 0, PAGE, ALL_ACCESS) &&
	      errno == EINVAL);
	errno = 0;
	CHECK(!ibv_reg_dm_mr(p->e.pd, dm, 8, PAGE, IBV_ACCESS_ZERO_BASED) &&
	      errno == EINVAL);
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_free_dm(dm));
	attr.length = dev.max_dm_size;
	CHECK(dm = ibv_alloc_dm(p->e.ctx, &attr));
	CHECK(!ibv_free_dm(dm));
	attr.length++;
	CHECK(!ibv_alloc_dm(p->e.ctx, &attr) && errno == ENOMEM);
	attr.length = 0;
	CHECK(!ibv_alloc_dm(p->e.ctx, &attr) && errno == EINVAL);
	attr.length = 4;
	attr.log_align_req = 13;
	CHECK(!ibv_alloc_dm(p->e.ctx, &attr) && errno == EINVAL);
	attr.log_align_req = 0;
	attr.comp_mask = 1;
	CHECK(!ibv_alloc_dm(p->e.ctx, &attr) && errno == EOPNOTSUPP);
	cases++;
}

/* ---- atomic write ---------------------------------------------------- */

static void atomic_write(struct pair *p)
{
	char *buf = pages(PAGE, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr = ibv_reg_mr(p->e.pd, buf, PAGE, ALL_ACCESS);
	struct ibv_mr *few =
		ibv_reg_mr(p->e.pd, buf, PAGE,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	uint64_t value = 0x0123456789abcdefull;
	struct ibv_sge sge = {(uintptr_t)&value, 8, 0};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_ATOMIC_WRITE,
		.send_flags = IBV_SEND_INLINE,
		.sg_list = &sge,
		.num_sge = 1,
		.wr.rdma = {(uintptr_t)buf + 8, mr->rkey},
	};
	struct ibv_wc wc = post(p, p->a, &wr);

	CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_ATOMIC_WRITE);
	CHECK(wc.byte_len == 8 && !memcmp(buf + 8, &value, 8) && !buf[16]);
	wr.wr.rdma.remote_addr += 4;
	CHECK(post(p, p->a, &wr).status == IBV_WC_REM_INV_REQ_ERR);
	again(p);
	wr.wr.rdma.remote_addr -= 4;
	sge.length = 4;
	CHECK(post(p, p->a, &wr).status == IBV_WC_LOC_LEN_ERR);
	again(p);
	sge.length = 8;
	wr.wr.rdma.rkey = few->rkey;
	CHECK(post(p, p->a, &wr).status == IBV_WC_REM_ACCESS_ERR);
	again(p);
	CHECK(!ibv_dereg_mr(few));
	CHECK(!ibv_dereg_mr(mr));
	munmap(buf, PAGE);
	cases++;
}

/* ---- flags ----------------------------------------------------------- */

static void access_flags(struct pair *p)
{
	char *buf = pages(LEN, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr;

	CHECK(mr = ibv_reg_mr(p->e.pd, buf, LEN,
			      ALL_ACCESS | IBV_ACCESS_RELAXED_ORDERING |
				      1 << 29));
	works(p, WRITE, (uintptr_t)buf, mr->rkey, 8);
	CHECK(!ibv_dereg_mr(mr));
	CHECK(mr = ibv_reg_mr(p->e.pd, buf, LEN,
			      ALL_ACCESS | IBV_ACCESS_ZERO_BASED));
	works(p, WRITE, 16, mr->rkey, 8);
	CHECK(!memcmp(buf + 16, p->mem, 8));
	refused(p, WRITE, (uintptr_t)buf, mr->rkey, 8);
	CHECK(!ibv_dereg_mr(mr));
	CHECK(mr = ibv_reg_mr_iova(p->e.pd, buf + 24, 100, 5 * PAGE + 24,
				   ALL_ACCESS));
	works(p, WRITE, 5 * PAGE + 24, mr->rkey, 100);
	CHECK(!memcmp(buf + 24, p->mem, 100));
	CHECK(!ibv_dereg_mr(mr));
	CHECK(mr = ibv_reg_mr(p->e.pd, buf, LEN,
			      ON_DEMAND | IBV_ACCESS_HUGETLB));
	CHECK(!ibv_dereg_mr(mr));
	errno = 0;
	CHECK(!ibv_reg_mr(p->e.pd, buf, LEN, 1 << 12) && errno == EINVAL);
	errno = 0;
	CHECK(!ibv_reg_mr(p->e.pd, NULL, SIZE_MAX,
			  ON_DEMAND | IBV_ACCESS_HUGETLB) &&
	      errno == EINVAL);
	munmap(buf, LEN);
	cases++;
}

/* A file that is no dmabuf, none at all, and an offset beyond reason. */
static void no_dmabuf(struct pair *p)
{
	int fd[2];

	CHECK(!pipe(fd));
	errno = 0;
	CHECK(!ibv_reg_dmabuf_mr(p->e.pd, 0, PAGE, 0, fd[0], ALL_ACCESS));
	CHECK(errno == EINVAL);
	close(fd[0]);
	close(fd[1]);
	errno = 0;
	CHECK(!ibv_reg_dmabuf_mr(p->e.pd, 0, PAGE, 0, fd[0], ALL_ACCESS));
	CHECK(errno == EBADF);
	cases++;
}

/* A memory file, which stands in for one with SFNIC_MEMORY=memfd. */
static bool have_dmabuf(void)
{
	const char *way = getenv("SFNIC_MEMORY");

	return way && !strcmp(way, "memfd");
}

static int new_file(char **map)
{
	int fd = memfd_create("dmabuf", MFD_CLOEXEC);

	CHECK(fd >= 0 && !ftruncate(fd, LEN));
	*map = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(*map != MAP_FAILED);
	return fd;
}

static void dmabuf(struct pair *p)
{
	char path[64], *map;
	int fd = new_file(&map), fixed;
	struct ibv_mr *mr, *read_only;
	uint64_t iova = 7 * PAGE;

	CHECK(mr = ibv_reg_dmabuf_mr(p->e.pd, PAGE, 2 * PAGE, iova, fd,
				     ALL_ACCESS));
	works(p, WRITE, iova, mr->rkey, 2 * PAGE);
	CHECK(!map[PAGE - 1] && !memcmp(map + PAGE, p->mem, 2 * PAGE));
	CHECK(!map[3 * PAGE]);
	memset(map + PAGE, 0, 8);
	works(p, IBV_WR_ATOMIC_FETCH_AND_ADD, iova, mr->rkey, 8);
	CHECK(map[PAGE] == 3);
	memset(map + 2 * PAGE, 0x66, 100);
	works(p, READ, iova + PAGE, mr->rkey, 100);
	CHECK(p->mem[0] == 0x66 && p->mem[99] == 0x66);
	refused(p, WRITE, iova + PAGE, mr->rkey, PAGE + 1);
	/* It has pages at its end, and places in them. */
	errno = 0;
	CHECK(!ibv_reg_dmabuf_mr(p->e.pd, 3 * PAGE, PAGE + 1, 0, fd, 0) &&
	      errno == EINVAL);
	errno = 0;
	CHECK(!ibv_reg_dmabuf_mr(p->e.pd, 1, 8, 2, fd, 0) && errno == EINVAL);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	CHECK((fixed = open(path, O_RDONLY)) >= 0);
	errno = 0;
	CHECK(!ibv_reg_dmabuf_mr(p->e.pd, 0, PAGE, 0, fixed, ALL_ACCESS) &&
	      errno == EACCES);
	CHECK(read_only = ibv_reg_dmabuf_mr(p->e.pd, 0, PAGE, 0, fixed,
					    IBV_ACCESS_REMOTE_READ));
	works(p, READ, 0, read_only->rkey, 8);
	close(fixed);
	/* The region has its own reference to the file. */
	close(fd);
	works(p, WRITE, iova, mr->rkey, 8);
	CHECK(!memcmp(map + PAGE, p->mem, 8));
	CHECK(!ibv_dereg_mr(read_only));
	CHECK(!ibv_dereg_mr(mr));
	refused(p, WRITE, iova, mr->rkey, 8);
	munmap(map, LEN);
	cases++;
}

/* ---- import ---------------------------------------------------------- */

struct gift {
	uint32_t pd, mr, dm, rkey, qpn;
	uint64_t addr, fixed;
	uint32_t fixed_key;
	uint32_t file_key; /* 0: there is none */
};

static void send_gift(int sock, const struct gift *gift, int fd)
{
	char space[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {(void *)gift, sizeof(*gift)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	if (fd >= 0) {
		msg.msg_control = space;
		msg.msg_controllen = sizeof(space);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	CHECK(sendmsg(sock, &msg, 0) == sizeof(*gift));
}

static int take_gift(int sock, struct gift *gift)
{
	char space[CMSG_SPACE(sizeof(int))];
	struct iovec iov = {gift, sizeof(*gift)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = space,
			     .msg_controllen = sizeof(space)};
	struct cmsghdr *c;
	int fd = -1;

	CHECK(recvmsg(sock, &msg, MSG_WAITALL) == sizeof(*gift));
	c = CMSG_FIRSTHDR(&msg);
	if (c)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* Another process on the same context: writes to the owner's memory. */
static void importer(int sock)
{
	struct pair p = {0};
	struct gift gift;
	struct ibv_mr *mr;
	struct ibv_dm *dm;
	char byte[4];
	int fd = take_gift(sock, &gift), i;

	CHECK(fd >= 0);
	CHECK(p.e.ctx = ibv_import_device(fd));
	CHECK(p.e.pd = ibv_import_pd(p.e.ctx, gift.pd));
	errno = 0;
	CHECK(!ibv_import_pd(p.e.ctx, gift.pd + 1000) && errno == EINVAL);
	CHECK(mr = ibv_import_mr(p.e.pd, gift.mr));
	CHECK(mr->lkey == gift.rkey && mr->length == LEN && !mr->addr);
	CHECK(!ibv_import_mr(p.e.pd, gift.mr ^ 1));
	CHECK(dm = ibv_import_dm(p.e.ctx, gift.dm));
	CHECK(!ibv_memcpy_from_dm(byte, dm, 0, 4) && !memcmp(byte, "dear", 4));
	CHECK(!ibv_memcpy_to_dm(dm, 4, "sir!", 4));
	CHECK(!ibv_query_port(p.e.ctx, 1, &p.e.port));
	CHECK(!ibv_query_gid(p.e.ctx, 1, 0, &p.e.gid));
	/* Two QPs of the shared domain, and the owner's memory. */
	p.cq = new_cq(&p.e, 16, NULL);
	p.a = new_qp(&p.e, p.cq, p.cq, 16);
	p.b = new_qp(&p.e, p.cq, p.cq, 16);
	again(&p);
	p.mem = pages(LEN, PROT_READ | PROT_WRITE);
	memset(p.mem, 0x42, LEN);
	CHECK(p.own = ibv_reg_mr(p.e.pd, p.mem, LEN, ALL_ACCESS));
	works(&p, WRITE, gift.addr, mr->rkey, LEN);
	/* A small message to the owner's memory, not to ours. */
	{
		struct ibv_sge to = {gift.addr + PAGE, 8, mr->lkey};
		struct ibv_sge from = {(uintptr_t)p.mem, 8, p.own->lkey};
		struct ibv_recv_wr recv = {.sg_list = &to, .num_sge = 1}, *bad;
		struct ibv_send_wr wr = {
			.opcode = IBV_WR_SEND, .sg_list = &from, .num_sge = 1};

		memset(p.mem, 0x24, 8);
		CHECK(!ibv_post_recv(p.b, &recv, &bad));
		CHECK(post(&p, p.a, &wr).status == IBV_WC_SUCCESS);
		CHECK(take(&p).status == IBV_WC_SUCCESS);
	}
	/* What the owner may not write, nobody may for him. */
	CHECK(rdma(&p, WRITE, gift.fixed, gift.fixed_key, 8) ==
	      IBV_WC_REM_OP_ERR);
	again(&p);
	works(&p, READ, gift.fixed, gift.fixed_key, 8);
	for (i = 0; i < 8; i++)
		CHECK(!p.mem[i]);
	CHECK(rdma(&p, READ, gift.fixed + PAGE, gift.fixed_key, 8) ==
	      IBV_WC_REM_OP_ERR);
	again(&p);
	if (gift.file_key) {
		memcpy(p.mem, "file", 4);
		works(&p, WRITE, 8, gift.file_key, 4);
	}
	CHECK(!ibv_destroy_qp(p.a));
	CHECK(!ibv_destroy_qp(p.b));
	CHECK(!ibv_destroy_cq(p.cq));
	CHECK(!ibv_dereg_mr(p.own));
	ibv_unimport_dm(dm);
	ibv_unimport_mr(mr);
	ibv_unimport_pd(p.e.pd);
	CHECK(!ibv_close_device(p.e.ctx));
	_exit(0);
}

static void import(int sock, pid_t child)
{
	struct ibv_alloc_dm_attr attr = {.length = 64};
	char *fixed = pages(2 * PAGE, PROT_READ);
	struct ibv_mr *fixed_mr, *file = NULL;
	struct pair p;
	struct gift gift;
	struct ibv_dm *dm;
	char byte[4], *map;
	int i, fd, status;

	mprotect(fixed + PAGE, PAGE, PROT_NONE);
	pair_open(&p);
	CHECK(fixed_mr = ibv_reg_mr(p.e.pd, fixed, 2 * PAGE, ON_DEMAND));
	CHECK(dm = ibv_alloc_dm(p.e.ctx, &attr));
	CHECK(!ibv_memcpy_to_dm(dm, 0, "dear", 4));
	gift = (struct gift){
		.pd = p.e.pd->handle,
		.mr = p.own->handle,
		.rkey = p.own->rkey,
		.addr = (uintptr_t)p.mem,
		.dm = dm->handle,
		.fixed = (uintptr_t)fixed,
		.fixed_key = fixed_mr->rkey,
	};
	if (have_dmabuf()) {
		fd = new_file(&map);
		CHECK(file = ibv_reg_dmabuf_mr(p.e.pd, 0, LEN, 0, fd,
					       ALL_ACCESS));
		close(fd);
		gift.file_key = file->rkey;
	}
	send_gift(sock, &gift, p.e.ctx->cmd_fd);
	CHECK(waitpid(child, &status, 0) == child && !status);
	for (i = 0; i < LEN; i++)
		CHECK(p.mem[i] == (i >= PAGE && i < PAGE + 8 ? 0x24 : 0x42));
	CHECK(!ibv_memcpy_from_dm(byte, dm, 4, 4) && !memcmp(byte, "sir!", 4));
	CHECK(!fixed[0]);
	if (file) {
		CHECK(!memcmp(map + 8, "file", 4));
		CHECK(!ibv_dereg_mr(file));
	}
	CHECK(!ibv_free_dm(dm));
	CHECK(!ibv_dereg_mr(fixed_mr));
	pair_close(&p);
	cases++;
}

int main(void)
{
	struct pair p;
	pid_t child;
	int sock[2];

	/* Before anything of ours is in it. */
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	CHECK((child = fork()) >= 0);
	if (!child)
		importer(sock[1]);
	import(sock[0], child);
	pair_open(&p);
	window_type_1(&p);
	window_type_2(&p);
	reregistration(&p);
	on_demand(&p);
	implicit(&p);
	local_faults(&p);
	null_region(&p);
	sizes(&p);
	device_memory(&p);
	atomic_write(&p);
	access_flags(&p);
	no_dmabuf(&p);
	if (have_dmabuf())
		dmabuf(&p);
	pair_close(&p);
	printf("%d cases, all right\n", cases);
	return 0;
}
