// BullMQ on Node; fast removes what is done and runs 100 at once. It is told all in its arguments by bullmq_node_jobs.py.
'use strict'

const fs = require('node:fs')
const { performance } = require('node:perf_hooks')
const { setTimeout: sleep } = require('node:timers/promises')

const { Queue, Worker } = require('bullmq')

const [what, said] = process.argv.slice(2)
const jobs = Number(said)
const terms = JSON.parse(process.argv[4])
const connection = { url: terms.url }
const options = terms.fast ? { removeOnComplete: true } : {}
const marks = fs.openSync(process.env.PEER_MARKS || '/dev/null', 'a', 0o600)

// The clock is that of Python's perf_counter_ns, for all processes of the machine.
const now = () => Number(process.hrtime.bigint())

async function run (job) {
  if (!terms.timed) {
    fs.writeSync(marks, '.')
    return
  }
  const late = Buffer.alloc(8)
  late.writeBigInt64LE(BigInt(now() - job.data.number))
  fs.writeSync(marks, late)
}

async function clocked (adding) {
  const cpu = process.cpuUsage()
  const at = performance.now()
  await adding()
  const seconds = (performance.now() - at) / 1e3
  const { user, system } = process.cpuUsage(cpu)
  console.log(JSON.stringify({ jobs, seconds, client_s: (user + system) / 1e6 }))
}

async function together (add) {
  async function caller (first) {
    for (let number = first; number < jobs; number += terms.callers) await add(number)
  }
  await Promise.all(Array.from({ length: terms.callers }, (_, first) => caller(first)))
}

async function bulk (queue) {
  for (let first = 0; first < jobs; first += terms.portion) {
    const length = Math.min(terms.portion, jobs - first)
    const data = (_, index) => ({ name: 'noop', data: { number: first + index, text: terms.text }, opts: options })
    await queue.addBulk(Array.from({ length }, data))
  }
}

async function paced (add) {
  const sending = []
  const begun = now()
  for (let due = begun; due < begun + jobs * terms.paceNs; due += terms.paceNs) {
    let at
    while ((at = now()) < due) await sleep((due - at) / 1e6)
    sending.push(add(at - due < terms.timerNs ? at : due))
  }
  await Promise.all(sending)
}

async function main () {
  if (what === 'drain') {
    const worker = new Worker('jobs', run, { connection, ...(terms.fast ? { concurrency: 100 } : {}) })
    worker.on('error', console.error)
    return
  }
  const queue = new Queue('jobs', { connection })
  await queue.getJobCounts()
  const add = number => queue.add('noop', { number, text: terms.text }, options)
  const ways = {
    one_awaited: () => clocked(async () => { for (let number = 0; number < jobs; number++) await add(number) }),
    together: () => clocked(() => together(add)),
    bulk: () => clocked(() => bulk(queue)),
    paced: () => paced(add)
  }
  ways.fill = ways.bulk
  if (ways[what]) await ways[what]()
  else console.error('lacking: its calls are asynchronous')
  await queue.close()
  process.exitCode = ways[what] ? 0 : 1
}

main().catch(error => {
  console.error(String(error.message))
  process.exit(1)
})
