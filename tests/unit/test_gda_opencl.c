// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sf_gda.h in real kernels: OpenCL on the CPU (PoCL) posts, the RNIC core
 * executes.  Queues and data are host memory, and the host's thread is the
 * device: it looks at the queue while a kernel runs.  A group's items run one
 * after the other there: none may wait for another of its group.
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "rnic_fixture.h"
#include "scalefabric/sf_gda.h"

#define ITEMS 64
#define ROUNDS 50

struct where {
	uint64_t remote, own;
	uint32_t rkey, lkey;
};

static struct {
	cl_context context;
	cl_command_queue queue;
	cl_program program;
	const char *std;
} cl;

struct rig {
	struct fx fx;
	struct fx_end a, b;
	struct fx_mr am, bm;
	uint64_t *own, *target;
	/* What kernels get; shared pages. */
	struct shared {
		struct sf_gda_qp q;
		struct where where;
		uint64_t sum;
		int res[ITEMS];
	} * sh;
};

static struct rig g;

/* ---- OpenCL --------------------------------------------------------- */

static bool device_found(cl_device_id *device)
{
	cl_platform_id platform;
	cl_uint n = 0;

	return !clGetPlatformIDs(1, &platform, &n) && n &&
	       !clGetDeviceIDs(platform, CL_DEVICE_TYPE_CPU, 1, device, &n) &&
	       n;
}

static void say_log(cl_device_id device)
{
	static char log[16384];

	clGetProgramBuildInfo(cl.program, device, CL_PROGRAM_BUILD_LOG,
			      sizeof(log) - 1, log, NULL);
	print_error("%s\n", log);
}

static int build(void **state)
{
	static const char source[] = "#include \"gda.cl\"\n";
	const char *text = source;
	char options[512];
	cl_device_id device;
	cl_int err;

	cl.std = *state;
	if (!device_found(&device)) {
		print_message("no OpenCL device for the CPU here\n");
		return 0;
	}
	cl.context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	assert_int_equal(err, CL_SUCCESS);
	cl.queue = clCreateCommandQueueWithProperties(cl.context, device, NULL,
						      &err);
	assert_int_equal(err, CL_SUCCESS);
	cl.program =
		clCreateProgramWithSource(cl.context, 1, &text, NULL, &err);
	assert_int_equal(err, CL_SUCCESS);
	snprintf(options, sizeof(options),
		 "-cl-std=%s -I%s/include -I%s/tests/unit", cl.std,
		 SF_SOURCE_DIR, SF_SOURCE_DIR);
	err = clBuildProgram(cl.program, 1, &device, options, NULL, NULL);
	if (err)
		say_log(device);
	assert_int_equal(err, CL_SUCCESS);
	return 0;
}

static int build_1_2(void **state)
{
	*state = "CL1.2";
	return build(state);
}

static int build_3_0(void **state)
{
	*state = "CL3.0";
	return build(state);
}

static int unbuild(void **state)
{
	(void)state;
	if (cl.context) {
		clReleaseProgram(cl.program);
		clReleaseCommandQueue(cl.queue);
		clReleaseContext(cl.context);
	}
	memset(&cl, 0, sizeof(cl));
	return 0;
}

struct arg {
	const void *value;
	size_t size; /* 0: a pointer for the kernel */
};

#define POINTER(p)   \
	{            \
		p, 0 \
	}
#define VALUE(v)                \
	{                       \
		&(v), sizeof(v) \
	}

/* Runs a kernel and is its device meanwhile. */
static void run(const char *name, size_t items, size_t group,
		const struct arg *arg, cl_uint args)
{
	cl_int err, status = CL_QUEUED;
	cl_kernel kernel = clCreateKernel(cl.program, name, &err);
	cl_event event;
	cl_uint i;

	assert_int_equal(err, CL_SUCCESS);
	for (i = 0; i < args; i++) {
		err = arg[i].size ?
			      clSetKernelArg(kernel, i, arg[i].size,
					     arg[i].value) :
			      clSetKernelArgSVMPointer(kernel, i, arg[i].value);
		assert_int_equal(err, CL_SUCCESS);
	}
	err = clEnqueueNDRangeKernel(cl.queue, kernel, 1, NULL, &items, &group,
				     0, NULL, &event);
	assert_int_equal(err, CL_SUCCESS);
	clFlush(cl.queue);
	while (status > CL_COMPLETE) {
		rnic_sq_ring(g.a.r, g.a.qpn);
		sched_yield();
		err = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS,
				     sizeof(status), &status, NULL);
		assert_int_equal(err, CL_SUCCESS);
	}
	assert_int_equal(status, CL_COMPLETE);
	rnic_sq_ring(g.a.r, g.a.qpn);
	clReleaseEvent(event);
	clReleaseKernel(kernel);
}

static void all_returned(uint32_t n, int res)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		assert_int_equal(g.sh->res[i], res);
}

/* ---- the queue ------------------------------------------------------ */

static int setup(void **state)
{
	struct fx_opts o = fx_defaults;
	uint64_t start;

	(void)state;
	memset(&g, 0, sizeof(g));
	o.sq_log_depth = 5;
	o.sq_log_stride = SF_SLOT_LOG_MIN;
	fx_open(&g.fx, RNIC_INFINIBAND);
	fx_pair(&g.fx, &g.a, &g.b, &o);
	g.am = fx_mr(&g.a, 65536, FX_ALL_ACCESS);
	g.bm = fx_mr(&g.b, 65536, FX_ALL_ACCESS);
	g.own = (uint64_t *)g.am.ptr;
	g.target = (uint64_t *)g.bm.ptr;
	g.sh = rnic_at(g.a.r, fx_pages(&g.fx, sizeof(*g.sh)));
	memset(g.sh->res, 0xff, sizeof(g.sh->res));
	start = fx_line(&g.a)->word;
	g.sh->q = (struct sf_gda_qp){
		.version = SF_GDA_VERSION,
		.size = sizeof(g.sh->q),
		.qpn = g.a.qpn,
		.polls = 2000000000,
		.slots = (uintptr_t)fx_slot(&g.a, 0),
		.log_depth = o.sq_log_depth,
		.log_stride = o.sq_log_stride,
		.line = (uintptr_t)fx_line(&g.a),
		.doorbell = (uintptr_t)rnic_at(g.a.r, g.a.mem.doorbells),
		.next = start,
		.done = start,
	};
	g.sh->where = (struct where){g.bm.addr, g.am.addr, g.bm.key, g.am.key};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fx_close(&g.fx);
	return 0;
}

/* ---- tests ---------------------------------------------------------- */

static void need_cl(void)
{
	if (!cl.context)
		skip();
}

static void many_items_post_to_one_queue(void **state)
{
	static const size_t groups[] = {1, 8, 64};
	uint32_t rounds = ROUNDS, i, k;
	struct arg arg[] = {POINTER(&g.sh->q), POINTER(&g.sh->where),
			    VALUE(rounds), POINTER(g.sh->res)};

	(void)state;
	need_cl();
	for (i = 0; i < 3; i++) {
		run("many", ITEMS, groups[i], arg, 4);
		all_returned(ITEMS, 0);
		for (k = 0; k < ITEMS; k++) {
			assert_int_equal(g.target[k], (i + 1) * rounds);
			assert_int_equal(g.target[ITEMS + k],
					 (uint64_t)k << 32 | (rounds - 1));
		}
	}
	expect_line(&g.a, g.sh->q.next);
}

static void group_posts_a_batch_with_one_ring(void **state)
{
	struct arg arg[] = {POINTER(&g.sh->q), POINTER(&g.sh->where),
			    POINTER(g.sh->res)};
	uint32_t k;

	(void)state;
	need_cl();
	run("batch", ITEMS, 16, arg, 3);
	all_returned(ITEMS / 16, 0);
	for (k = 0; k < ITEMS; k++)
		assert_int_equal(g.target[k], k + 1);
}

static void signals_announce_what_was_put(void **state)
{
	uint64_t word = 4096, value = 3 * ITEMS, sum = 0, k;
	uint32_t n = ITEMS;
	struct arg put[] = {POINTER(&g.sh->q), POINTER(&g.sh->where),
			    VALUE(word), POINTER(g.sh->res)};
	struct arg get[] = {POINTER(&g.sh->q), POINTER(g.target + word / 8),
			    VALUE(value),      POINTER(g.target),
			    VALUE(n),	       POINTER(&g.sh->sum),
			    POINTER(g.sh->res)};

	(void)state;
	need_cl();
	for (k = 0; k < ITEMS; k++)
		sum += g.own[k] = k * k + 1;
	run("signal", ITEMS, 8, put, 4);
	all_returned(ITEMS, 0);
	run("gather", 1, 1, get, 7);
	all_returned(1, 0);
	assert_int_equal(g.sh->sum, sum);
	assert_int_equal(g.target[word / 8], value);
}

static void atomics_and_get_bring_back(void **state)
{
	struct arg arg[] = {POINTER(&g.sh->q), POINTER(&g.sh->where),
			    POINTER(g.own), POINTER(g.sh->res)};

	(void)state;
	need_cl();
	g.target[0] = 100;
	run("fetch", 1, 1, arg, 4);
	all_returned(1, 0);
}

static void error_ends_all_items(void **state)
{
	uint32_t rounds = ROUNDS;
	struct arg arg[] = {POINTER(&g.sh->q), POINTER(&g.sh->where),
			    VALUE(rounds), POINTER(g.sh->res)};

	(void)state;
	need_cl();
	g.sh->where.rkey ^= 1;
	run("many", ITEMS, 1, arg, 4);
	all_returned(ITEMS, SF_ST_REM_ACCESS_ERR);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(many_items_post_to_one_queue),
		T(group_posts_a_batch_with_one_ring),
		T(signals_announce_what_was_put),
		T(atomics_and_get_bring_back),
		T(error_ends_all_items),
	};
	int failed;

	failed = cmocka_run_group_tests_name("OpenCL C 1.2", tests, build_1_2,
					     unbuild);
	failed += cmocka_run_group_tests_name("OpenCL C 3.0", tests, build_3_0,
					      unbuild);
	return failed;
}
