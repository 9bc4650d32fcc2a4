// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The private interface as we declare it, against the libibverbs that is
 * installed here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "scalefabric.h"

static void running_library_has_the_layout_we_were_built_for(void **state)
{
	(void)state;
	assert_true(sf_layout_matches());
}

static void library_looks_for_the_qp_ex_bit_at_our_offset_only(void **state)
{
	uint64_t buf[128];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(struct verbs_qp) / 4; i++) {
		memset(buf, 0, sizeof(buf));
		((uint32_t *)buf)[i] = VERBS_QP_EX;
		if (i == offsetof(struct verbs_qp, comp_mask) / 4)
			assert_non_null(ibv_qp_to_qp_ex((struct ibv_qp *)buf));
		else
			assert_null(ibv_qp_to_qp_ex((struct ibv_qp *)buf));
	}
}

static void every_private_symbol_we_import_has_version_34(void **state)
{
	static const char *const names[] = {
		"__verbs_log",
		"_verbs_init_and_alloc_context",
		"ibv_cmd_alloc_pd",
		"ibv_cmd_create_counters",
		"ibv_cmd_create_cq_ex",
		"ibv_cmd_create_flow",
		"ibv_cmd_create_qp_ex",
		"ibv_cmd_create_qp_ex2",
		"ibv_cmd_create_rwq_ind_table",
		"ibv_cmd_create_wq",
		"ibv_cmd_dealloc_pd",
		"ibv_cmd_dereg_mr",
		"ibv_cmd_destroy_counters",
		"ibv_cmd_destroy_cq",
		"ibv_cmd_destroy_flow",
		"ibv_cmd_destroy_qp",
		"ibv_cmd_destroy_rwq_ind_table",
		"ibv_cmd_destroy_wq",
		"ibv_cmd_get_context",
		"ibv_cmd_modify_qp",
		"ibv_cmd_modify_wq",
		"ibv_cmd_query_device_any",
		"ibv_cmd_query_port",
		"ibv_cmd_query_qp",
		"ibv_cmd_read_counters",
		"ibv_cmd_modify_cq",
		"ibv_cmd_reg_mr",
		"ibv_cmd_req_notify_cq",
		"ibv_cmd_resize_cq",
		"verbs_init_cq",
		"verbs_register_driver_34",
		"verbs_set_ops",
		"verbs_uninit_context",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_non_null(
			dlvsym(RTLD_DEFAULT, names[i], "IBVERBS_PRIVATE_34"));
}

/* A value that names its slot and is never called. */
#define SLOT(n) ((void *)(uintptr_t)(0x5f000000 + (n)))

static void set_ops_copies_each_slot_to_the_public_table(void **state)
{
	struct verbs_device vdev = {.refcount = 1};
	struct ibv_device *device = &vdev.device;
	struct verbs_context_ops ops;
	struct sf_context *ctx = NULL;
	struct verbs_context *v;
	void **slot = (void **)&ops;
	size_t i;
	int fd;

	(void)state;
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	ctx = verbs_init_and_alloc_context(device, fd, ctx, vctx,
					   RDMA_DRIVER_UNKNOWN);
	assert_non_null(ctx);
	v = &ctx->vctx;
	assert_ptr_equal(v->context.device, device);
	assert_int_equal(v->context.cmd_fd, fd);
	assert_ptr_equal(v->context.abi_compat, (void *)-1);
	assert_int_equal(v->sz, sizeof(*v));

	for (i = 0; i < sizeof(ops) / sizeof(*slot); i++)
		slot[i] = SLOT(i);
	verbs_set_ops(v, &ops);

	assert_ptr_equal(v->context.ops.poll_cq, ops.poll_cq);
	assert_ptr_equal(v->context.ops.post_send, ops.post_send);
	assert_ptr_equal(v->context.ops.post_recv, ops.post_recv);
	assert_ptr_equal(v->context.ops.post_srq_recv, ops.post_srq_recv);
	assert_ptr_equal(v->context.ops.req_notify_cq, ops.req_notify_cq);
	assert_ptr_equal(v->context.ops.alloc_mw, ops.alloc_mw);
	assert_ptr_equal(v->context.ops.bind_mw, ops.bind_mw);
	assert_ptr_equal(v->context.ops.dealloc_mw, ops.dealloc_mw);
	assert_ptr_equal(v->context.ops._compat_create_qp, ops.create_qp);
	assert_ptr_equal(v->context.ops._compat_destroy_qp, ops.destroy_qp);
	assert_ptr_equal(v->context.ops._compat_reg_mr, ops.reg_mr);
	assert_ptr_equal(v->context.ops._compat_resize_cq, ops.resize_cq);
	assert_ptr_equal(v->create_qp_ex, ops.create_qp_ex);
	assert_ptr_equal(v->query_device_ex, ops.query_device_ex);
	assert_ptr_equal(v->alloc_parent_domain, ops.alloc_parent_domain);
	assert_ptr_equal(v->post_srq_ops, ops.post_srq_ops);
	assert_ptr_equal(v->advise_mr, ops.advise_mr);
	/* The library's own, never a provider's. */
	assert_ptr_not_equal(v->create_cq_ex, ops.create_cq_ex);

	verbs_uninit_context(v);
	free(ctx);
}

static void a_null_slot_leaves_the_library_s_answer(void **state)
{
	struct verbs_context_ops ops = {};
	struct verbs_device vdev = {.refcount = 1};
	struct sf_context *ctx = NULL;
	void *before;
	int fd;

	(void)state;
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	ctx = verbs_init_and_alloc_context(&vdev.device, fd, ctx, vctx,
					   RDMA_DRIVER_UNKNOWN);
	assert_non_null(ctx);
	before = (void *)ctx->vctx.context.ops.poll_cq;
	assert_non_null(before);
	verbs_set_ops(&ctx->vctx, &ops);
	assert_ptr_equal(ctx->vctx.context.ops.poll_cq, before);
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			running_library_has_the_layout_we_were_built_for),
		cmocka_unit_test(
			library_looks_for_the_qp_ex_bit_at_our_offset_only),
		cmocka_unit_test(every_private_symbol_we_import_has_version_34),
		cmocka_unit_test(set_ops_copies_each_slot_to_the_public_table),
		cmocka_unit_test(a_null_slot_leaves_the_library_s_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
