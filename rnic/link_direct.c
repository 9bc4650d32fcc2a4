/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The direct link: both ends in this arena.  The responder is called in the
 * requester's thread with a reference to the payload; its answer is the return
 * value.
 */
#include "rnic/internal.h"

struct direct_reply {
	struct rnic_reply base;
	struct rnic *r;
	const struct rnic_packet *request;
	struct rnic_packet *answer;
	bool answered;
};

static enum rnic_copy_result direct_answer(struct rnic_reply *reply,
					   const struct rnic_packet *answer)
{
	struct direct_reply *d = (struct direct_reply *)reply;
	enum rnic_copy_result res = RNIC_COPY_OK;

	/* A READ's bytes go straight to where they are wanted. */
	if (answer->payload && d->request->sink)
		res = rnic_sgl_copy(d->r, d->request->sink,
				    d->request->sink_off, answer->payload,
				    answer->payload_off, answer->len);
	*d->answer = *answer;
	d->answer->payload = NULL;
	/* As if one answer for each packet had come. */
	if (answer->npkts)
		d->answer->psn = rnic_psn_add(answer->psn, answer->npkts - 1);
	d->answered = !res;
	return res;
}

static enum rnic_link_result direct_send(struct rnic_call *call,
					 struct rnic_qp *qp,
					 const struct rnic_packet *pkt,
					 struct rnic_packet *answer)
{
	struct direct_reply reply = {
		.base.send = direct_answer,
		.r = call->r,
		.request = pkt,
		.answer = answer,
	};
	struct rnic_qp *peer = rnic_qp_get(call->r, pkt->dest_qpn);

	/* Not there, or not where the path leads: nobody hears it. */
	if (!peer || peer->init.dev != qp->peer_dev ||
	    !rnic_responder_lock(call->r, peer))
		return RNIC_LINK_SENT;
	if (load_acquire(&peer->qpn) == pkt->dest_qpn)
		rnic_responder_receive(call, peer, pkt, &reply.base);
	rnic_responder_unlock(call, peer);
	return reply.answered ? RNIC_LINK_ANSWERED : RNIC_LINK_SENT;
}

const struct rnic_link_ops rnic_link_direct = {
	.burst = RNIC_BURST,
	.window = 1,
	.send = direct_send,
};
