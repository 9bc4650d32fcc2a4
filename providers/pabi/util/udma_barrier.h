/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Order between memory that a device reads or writes by DMA and the accesses
 * around it.  Names as in rdma-core; what each promises:
 *
 * udma_to_device_barrier: a device that sees a later store (a commit word, a
 * doorbell) sees every earlier store to memory too.
 *
 * udma_from_device_barrier: what the device wrote before a value that we have
 * read is what later loads return.
 */
#ifndef SF_PABI_UDMA_BARRIER_H
#define SF_PABI_UDMA_BARRIER_H

#if defined(__x86_64__) || defined(__i386__)
/* Stores are seen in order, loads are done in order: hold the compiler only. */
#define udma_to_device_barrier() __asm__ volatile("" ::: "memory")
#define udma_from_device_barrier() __asm__ volatile("" ::: "memory")
#elif defined(__aarch64__)
#define udma_to_device_barrier() __asm__ volatile("dmb oshst" ::: "memory")
#define udma_from_device_barrier() __asm__ volatile("dmb oshld" ::: "memory")
#else
#define udma_to_device_barrier() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define udma_from_device_barrier() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

#endif
