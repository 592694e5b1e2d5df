import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { startOfContent, textOfStart } from '../../src/gateway/answer/json-text-block.ts';

const text = fc.array(fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('"', '\\', '\n', '\0', 'é', '😀')));

describe('the beginning of a result', () => {
  it('[agent 5] is a prefix of its text, wherever the content is cut', () => {
    fc.assert(
      fc.property(text, fc.nat({ max: 400 }), fc.boolean(), (parts, most, isBuffer) => {
        const whole = parts.join('').toWellFormed();
        const json = JSON.stringify([{ type: 'text', text: whole }]);
        const start = startOfContent(isBuffer ? Buffer.from(json) : json, most);
        const found = textOfStart(start, false, 50);
        if (found === undefined) assert.ok(most < 24);
        else assert.ok(whole.startsWith(found) || found.endsWith('\ufffd'), JSON.stringify([whole, found]));
      }),
      { numRuns: 2000 },
    );
  });

  it('[agent 5] of a whole content has every text, and of a file its type', () => {
    const content = JSON.stringify([
      { type: 'text', text: 'Link: x' },
      { type: 'image', data: 'AAAA', mimeType: 'image/png' },
      { type: 'resource', resource: { uri: 'a:b', mimeType: 'text/csv', text: 'a,b' } },
    ]);
    const start = startOfContent(content, 1000);
    assert.equal(textOfStart(start, true, 1000), 'Link: x\n(a file, image/png)\na,b');
  });
});
