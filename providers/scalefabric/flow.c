// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Steering rules, and counters of what they match. */
#include <errno.h>
#include <stdlib.h>

#include <util/util.h>

#include "scalefabric.h"

/* ------------------------------------------------------------------------
 * Rules
 */

struct ibv_flow *sf_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	struct ibv_flow *flow = calloc(1, sizeof(*flow));
	int err;

	if (!flow)
		return NULL;
	err = ibv_cmd_create_flow(qp, flow, attr, NULL, 0);
	if (err) {
		free(flow);
		errno = err;
		return NULL;
	}
	return flow;
}

int sf_destroy_flow(struct ibv_flow *flow)
{
	int err = ibv_cmd_destroy_flow(flow);

	if (!err)
		free(flow);
	return err;
}

/* ------------------------------------------------------------------------
 * Counters.  The device counts packets and bytes of the rules that name them;
 * where in the caller's array a number goes is known here only.
 */

struct sf_counter_point {
	struct sf_counter_point *next;
	enum ibv_counter_description what;
	uint32_t index;
};

struct sf_counters {
	struct verbs_counters vcounters;
	pthread_mutex_t lock;
	struct sf_counter_point *points;
};

static struct sf_counters *to_sf_counters(struct ibv_counters *counters)
{
	return container_of(counters, struct sf_counters, vcounters.counters);
}

struct ibv_counters *sf_create_counters(struct ibv_context *context,
					struct ibv_counters_init_attr *attr)
{
	struct sf_counters *counters;
	int err;

	if (!check_comp_mask(attr->comp_mask, 0)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	counters = calloc(1, sizeof(*counters));
	if (!counters)
		return NULL;
	err = ibv_cmd_create_counters(context, attr, &counters->vcounters,
				      NULL);
	if (err) {
		free(counters);
		errno = err;
		return NULL;
	}
	pthread_mutex_init(&counters->lock, NULL);
	return &counters->vcounters.counters;
}

int sf_destroy_counters(struct ibv_counters *ibcounters)
{
	struct sf_counters *counters = to_sf_counters(ibcounters);
	struct sf_counter_point *point;
	int err;

	err = ibv_cmd_destroy_counters(&counters->vcounters);
	if (err)
		return err;
	while ((point = counters->points)) {
		counters->points = point->next;
		free(point);
	}
	pthread_mutex_destroy(&counters->lock);
	free(counters);
	return 0;
}

/* Only for rules that are made with these counters: no @flow. */
int sf_attach_counters_point_flow(struct ibv_counters *ibcounters,
				  struct ibv_counter_attach_attr *attr,
				  struct ibv_flow *flow)
{
	struct sf_counters *counters = to_sf_counters(ibcounters);
	struct sf_counter_point *point;

	if (!check_comp_mask(attr->comp_mask, 0) || flow)
		return EOPNOTSUPP;
	if (attr->counter_desc != IBV_COUNTER_PACKETS &&
	    attr->counter_desc != IBV_COUNTER_BYTES)
		return EOPNOTSUPP;
	point = malloc(sizeof(*point));
	if (!point)
		return ENOMEM;
	point->what = attr->counter_desc;
	point->index = attr->index;
	pthread_mutex_lock(&counters->lock);
	point->next = counters->points;
	counters->points = point;
	pthread_mutex_unlock(&counters->lock);
	return 0;
}

static_assert((int)SCALEFABRIC_FLOW_PACKETS == IBV_COUNTER_PACKETS, "");
static_assert((int)SCALEFABRIC_FLOW_BYTES == IBV_COUNTER_BYTES, "");

int sf_read_counters(struct ibv_counters *ibcounters, uint64_t *values,
		     uint32_t n, uint32_t flags)
{
	struct sf_counters *counters = to_sf_counters(ibcounters);
	uint64_t counted[SCALEFABRIC_FLOW_COUNTERS] = {};
	const struct sf_counter_point *point;
	uint32_t i;
	int err;

	err = ibv_cmd_read_counters(&counters->vcounters, counted,
				    SCALEFABRIC_FLOW_COUNTERS, flags, NULL);
	if (err)
		return err;
	pthread_mutex_lock(&counters->lock);
	for (point = counters->points; point && !err; point = point->next)
		if (point->index >= n)
			err = EINVAL;
	for (i = 0; i < n && !err; i++)
		values[i] = 0;
	for (point = counters->points; point && !err; point = point->next)
		values[point->index] += counted[point->what];
	pthread_mutex_unlock(&counters->lock);
	return err;
}
