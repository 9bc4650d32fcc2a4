// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include <ccan/minmax.h>

#include "scalefabric.h"

#define SF_TABLE_MIN 16U
#define SF_TABLE_MAX 4096U

/* @max: a power of two, about how many there may be. */
int sf_cq_table_init(struct sf_cq_table *table, uint32_t max)
{
	uint32_t n = min_t(uint32_t, max, SF_TABLE_MAX);

	n = max_t(uint32_t, n, SF_TABLE_MIN);
	table->buckets = calloc(n, sizeof(*table->buckets));
	if (!table->buckets)
		return ENOMEM;
	table->mask = n - 1;
	return 0;
}

void sf_cq_table_destroy(struct sf_cq_table *table)
{
	free(table->buckets);
}

/*
 * In front: if the number is still here, its former owner is dead for the
 * device and about to leave.  Stored such that even a poller without a lock
 * walks a whole chain.
 */
static void sf_table_insert(struct sf_cq_table *table, struct sf_cq_link *link,
			    uint32_t number)
{
	struct sf_cq_link **head = &table->buckets[number & table->mask];

	link->number = number;
	link->next = *head;
	__atomic_store_n(head, link, __ATOMIC_RELEASE);
}

static void sf_table_remove(struct sf_cq_table *table, struct sf_cq_link *link)
{
	struct sf_cq_link **p = &table->buckets[link->number & table->mask];

	while (*p != link)
		p = &(*p)->next;
	*p = link->next;
}

/* Both CQs of a QP, the lower address first; either may be missing. */
void sf_lock_cqs(struct ibv_qp *qp)
{
	struct ibv_cq *first = qp->send_cq, *second = qp->recv_cq;

	if (first > second) {
		first = qp->recv_cq;
		second = qp->send_cq;
	}
	if (first && first != second)
		sf_lock(&to_sf_cq(first)->lock);
	if (second)
		sf_lock(&to_sf_cq(second)->lock);
}

void sf_unlock_cqs(struct ibv_qp *qp)
{
	if (qp->send_cq)
		sf_unlock(&to_sf_cq(qp->send_cq)->lock);
	if (qp->recv_cq && qp->recv_cq != qp->send_cq)
		sf_unlock(&to_sf_cq(qp->recv_cq)->lock);
}

void sf_qp_attach(struct sf_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;
	struct sf_context *ctx = to_sf_context(ibqp->context);

	qp->send_link.qp = qp;
	qp->recv_link.qp = qp;
	pthread_mutex_lock(&ctx->table_lock);
	sf_lock_cqs(ibqp);
	if (ibqp->send_cq)
		sf_table_insert(&to_sf_cq(ibqp->send_cq)->qps, &qp->send_link,
				ibqp->qp_num);
	if (ibqp->recv_cq && ibqp->recv_cq != ibqp->send_cq)
		sf_table_insert(&to_sf_cq(ibqp->recv_cq)->qps, &qp->recv_link,
				ibqp->qp_num);
	sf_unlock_cqs(ibqp);
	pthread_mutex_unlock(&ctx->table_lock);
}

/* When this returns no poller looks at the QP, nor will one find it. */
void sf_qp_detach(struct sf_qp *qp)
{
	struct ibv_qp *ibqp = &qp->vqp.qp;
	struct sf_context *ctx = to_sf_context(ibqp->context);

	pthread_mutex_lock(&ctx->table_lock);
	sf_lock_cqs(ibqp);
	if (qp->srq && ibqp->recv_cq)
		sf_cq_return_srq_receives(to_sf_cq(ibqp->recv_cq), qp);
	if (ibqp->send_cq)
		sf_table_remove(&to_sf_cq(ibqp->send_cq)->qps, &qp->send_link);
	if (ibqp->recv_cq && ibqp->recv_cq != ibqp->send_cq)
		sf_table_remove(&to_sf_cq(ibqp->recv_cq)->qps, &qp->recv_link);
	sf_unlock_cqs(ibqp);
	pthread_mutex_unlock(&ctx->table_lock);
}

/* An XRC SRQ: its number comes back in the CQEs of its receives. */
void sf_srq_attach(struct sf_srq *srq)
{
	struct sf_context *ctx = to_sf_context(srq->vsrq.srq.context);
	struct sf_cq *cq = to_sf_cq(srq->vsrq.cq);

	srq->link.srq = srq;
	pthread_mutex_lock(&ctx->table_lock);
	sf_lock(&cq->lock);
	sf_table_insert(&cq->srqs, &srq->link, srq->vsrq.srq_num);
	sf_unlock(&cq->lock);
	pthread_mutex_unlock(&ctx->table_lock);
}

void sf_srq_detach(struct sf_srq *srq)
{
	struct sf_context *ctx = to_sf_context(srq->vsrq.srq.context);
	struct sf_cq *cq = to_sf_cq(srq->vsrq.cq);

	pthread_mutex_lock(&ctx->table_lock);
	sf_lock(&cq->lock);
	sf_table_remove(&cq->srqs, &srq->link);
	sf_unlock(&cq->lock);
	pthread_mutex_unlock(&ctx->table_lock);
}
