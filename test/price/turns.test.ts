import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import { isTurnSpent, nextTurn, shortTurn, turnToBegin, workFor } from '../../src/domain/work/next-turn.ts';
import { readBody } from '../../src/http/read-body.ts';

const megabyte = 1024 * 1024;

describe('turns of the event loop', () => {
  it('are given one at a time, in the order in which they were asked for', async () => {
    let turn = 0;
    let isOver = false;
    const count = () => {
      turn++;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const got: { waiter: number; turn: number }[] = [];
    await Promise.all(
      Array.from({ length: 20 }, async (_, waiter) => {
        await nextTurn();
        got.push({ waiter, turn });
      }),
    );
    isOver = true;
    assert.deepEqual(
      got.map(({ waiter }) => waiter),
      got.map((_, i) => i),
    );
    assert.equal(new Set(got.map((one) => one.turn)).size, 20);
  });

  it('go to work that has begun first, and to other work at least every sixteenth time', async () => {
    const order: string[] = [];
    const note = (what: string) => () => {
      order.push(what);
    };
    const late = Array.from({ length: 2 }, () => turnToBegin().then(note('begins')));
    const early = Array.from({ length: 40 }, () => nextTurn().then(note('goes on')));
    await Promise.all([...late, ...early]);
    const begins = order.flatMap((what, i) => (what === 'begins' ? [i] : []));
    assert.deepEqual(begins, [15, 31]);
  });

  it('are given to one workspace after the other, however many of one wait, and within it to one network after the other', async () => {
    const order: string[] = [];
    const wait = (workspaceId: string, network?: string) =>
      turnToBegin({ workspaceId, network }).then(() => void order.push(network ?? workspaceId));
    const goOn = () => workFor({ workspaceId: 'busy' }, () => nextTurn()).then(() => void order.push('busy'));
    const busy = [...Array.from({ length: 50 }, goOn), ...Array.from({ length: 50 }, () => wait('busy'))];
    const crowd = Array.from({ length: 20 }, () => wait('open', 'crowd'));
    await Promise.all([wait('open', 'one'), wait('quiet'), wait('quiet')]);
    assert.deepEqual(order, ['busy', 'crowd', 'quiet', 'busy', 'one', 'quiet']);
    await Promise.all([...busy, ...crowd]);
    assert.equal(order.length, 123);
  });

  it('are shared among short pieces of work: what comes does not go before what waits', async () => {
    const counts = Array.from({ length: 50 }, () => 0);
    let all = 0;
    const party = { workspaceId: 'many' };
    const client = async (at: number) => {
      while (all < 1000) {
        if (isTurnSpent()) await shortTurn(party);
        const until = performance.now() + 0.5;
        while (performance.now() < until);
        counts[at] = (counts[at] ?? 0) + 1;
        all++;
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    await Promise.all(counts.map((_, at) => client(at)));
    assert.ok(Math.min(...counts) >= 10, `of 50 clients one got ${Math.min(...counts)} of 1000 turns`);
  });

  it('are waited for by bodies of at most 64 MB; the rest is not read meanwhile', async () => {
    const request = () => new PassThrough({ highWaterMark: megabyte }) as unknown as IncomingMessage & PassThrough;
    const bodies = Array.from({ length: 70 }, request);
    const read = bodies.map((body) => readBody(body, megabyte, { workspaceId: 'many' }));
    const late = request();
    const whole = readBody(late, megabyte, { workspaceId: 'many' });
    const haveEnded = Promise.all(bodies.map((body) => once(body, 'end')));
    for (const body of bodies) body.end(Buffer.alloc(megabyte));
    await haveEnded;
    const hasBegun = once(late, 'data');
    late.write(Buffer.alloc(megabyte / 2));
    await hasBegun;
    late.end(Buffer.alloc(megabyte / 4));
    assert.ok(late.isPaused(), 'is read');
    await Promise.all(read);
    assert.equal((await whole).length, (megabyte * 3) / 4);
  });

  it('of bodies of one workspace do not keep those of another from being read', async () => {
    const request = () => new PassThrough({ highWaterMark: megabyte }) as unknown as IncomingMessage & PassThrough;
    const bodies = Array.from({ length: 70 }, request);
    const read = bodies.map((body) => readBody(body, megabyte, { workspaceId: 'many' }));
    const other = request();
    const whole = readBody(other, megabyte, { workspaceId: 'other' });
    const haveEnded = Promise.all(bodies.map((body) => once(body, 'end')));
    for (const body of bodies) body.end(Buffer.alloc(megabyte));
    await haveEnded;
    const hasBegun = once(other, 'data');
    other.write(Buffer.alloc(megabyte / 2));
    await hasBegun;
    assert.ok(!other.isPaused(), 'is not read');
    other.end();
    await Promise.all([...read, whole]);
  });
});
