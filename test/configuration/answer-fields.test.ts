import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { toolProblems } from '../support/configurations.ts';
import { type Json, startToolhost, type TestToolhost } from '../support/toolhost/toolhost.ts';

describe('the fields of a tool about its answer', () => {
  let toolhost: TestToolhost;
  before(async () => {
    toolhost = await startToolhost();
  });
  after(() => toolhost.stop());

  const problems = (fields: Json) => toolProblems(toolhost, fields);

  it('[conf 5] response_headers takes each name once, and no headers of cookies or of the connection', async () => {
    assert.deepEqual(await problems({ response_headers: ['Link', 'X-Total-Count', 'etag'] }), []);
    const refused: [string, RegExp][] = [
      ['Set-Cookie', /agents never get this header/],
      ['SET-COOKIE2', /agents never get this header/],
      ['Connection', /agents never get this header/],
      ['Transfer-Encoding', /agents never get this header/],
      ['Proxy-Authenticate', /agents never get this header/],
      ['X A', /found "X A"; allowed: the name of a header, such as Link$/],
      ['Link: x', /allowed: the name of a header/],
      ['Lïnk', /allowed: the name of a header/],
    ];
    for (const [name, message] of refused) {
      const [problem = '', ...more] = await problems({ response_headers: ['ETag', name] });
      assert.match(problem, /^tools\[0\]\.response_headers\[1\]: /);
      assert.match(problem, message);
      assert.deepEqual(more, []);
    }
    assert.deepEqual(await problems({ response_headers: ['Link', 'link'] }), [
      'tools[0].response_headers[1]: this header is named twice',
    ]);
    for (const wrong of [[], 'Link', [1], Array.from({ length: 21 }, (_, i) => `X-${i}`)])
      assert.match((await problems({ response_headers: wrong })).join(), /^tools\[0\]\.response_headers/);
  });

  it('[conf 5] redirects are followed for GET only, because another request must not be sent twice', async () => {
    assert.deepEqual(await problems({ redirects: 'follow' }), []);
    assert.deepEqual(await problems({ redirects: 'follow', method: 'get' }), []);
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      assert.deepEqual(await problems({ redirects: 'follow', method }), [
        `tools[0].redirects: found "${method}" as the method; only redirects of GET and HEAD are followed, because another request must not be sent twice; leave it out`,
      ]);
    }
    assert.match((await problems({ redirects: 'always' })).join(), /^tools\[0\]\.redirects: .*allowed: "follow"$/);
  });
});
