import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { createTokenIds } from '../../src/gateway/callers/recent-digests.ts';

const minute = 60_000;
const text = fc.string({ minLength: 1, maxLength: 8 });

const at = (id: string, workspaceId = 'ours') => ({ id, workspaceId });

/** Ids of tokens, and those that were computed and are remembered if their credentials are accepted. */
function watchedIds(isAccepted: (id: string) => boolean) {
  const computed: string[] = [];
  const ids = createTokenIds((id) => {
    computed.push(id);
    return isAccepted(id);
  });
  return { ...ids, computed };
}

describe('the ids of tokens', () => {
  it('are the same for a server and a token, remembered or not, and others for any other', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    fc.assert(
      fc.property(fc.array(fc.record({ server: text, token: text, wait: fc.nat(2 * minute) })), (calls) => {
        const [all, none] = [watchedIds(() => true), watchedIds(() => false)];
        const tokenOf = new Map<string, string>();
        for (const { server, token, wait } of calls) {
          t.mock.timers.tick(wait);
          const id = all.idOf(at(server), token);
          assert.equal(none.idOf(at(server), token), id);
          const pair = JSON.stringify([server, token]);
          assert.equal(tokenOf.get(id) ?? pair, pair);
          tokenOf.set(id, pair);
        }
      }),
    );
  });

  it('are remembered of accepted tokens, for a minute', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const ids = watchedIds(() => true);
    for (let round = 1; round < 4; round++) {
      for (const wait of [0, minute / 2]) {
        t.mock.timers.tick(wait);
        ids.idOf(at('server'), 'token');
        assert.equal(ids.computed.length, round);
      }
      t.mock.timers.tick(minute / 2);
      assert.equal(ids.find('server', 'token'), undefined);
    }
  });

  it('[find A6] are not remembered of made-up tokens, which so displace no accepted one', () => {
    const accepted = createTokenIds(() => true).idOf(at('server'), 'good');
    const ids = watchedIds((id) => id === accepted);
    for (let made = 0; made < 5000; made++) ids.idOf(at('server'), `made up ${made}`);
    ids.idOf(at('server'), 'good');
    const before = ids.computed.length;
    ids.idOf(at('server'), 'good');
    assert.equal(ids.computed.length, before);
    ids.idOf(at('server'), 'made up 0');
    assert.equal(ids.computed.length, before + 1);
  });

  it('are not remembered without an end, nor of long tokens', () => {
    const ids = watchedIds(() => true);
    const long = 'x'.repeat(3000);
    ids.idOf(at('server'), long);
    assert.equal(ids.find('server', long), undefined);
    const tokens = Array.from({ length: 1500 }, (_, number) => `token ${number}`);
    for (const token of tokens) ids.idOf(at('server'), token);
    assert.equal(tokens.filter((token) => ids.find('server', token) !== undefined).length, 1000);
  });
});
