import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { parseUrl } from './http/read-url.ts';
import { normalizeText } from './normalized-text.ts';

const forms = ['NFC', 'NFKC', 'NFKD'] as const;

describe('text normalization', () => {
  it('[find A2] matches the standard, except for long sequences of marks and two ligatures', () => {
    const words = fc.array(fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('e\u0301', '\ufb01', '\uac00')));
    fc.assert(
      fc.property(words, fc.constantFrom(...forms), (textParts, form) => {
        const text = textParts.join('a');
        fc.pre(!/\p{M}{30}|[\ufdfa\ufdfb]/u.test(text));
        assert.equal(normalizeText(text, form), text.normalize(form));
      }),
    );
    assert.equal(normalizeText('\ufdfa\ufdfb', 'NFKD'), '\ufffd\ufffd');
  });
});

describe('parsing of third-party URLs', () => {
  it('[find A2] matches the standard for hosts that can exist', () => {
    const label = fc.string({ unit: fc.constantFrom('a', 'b', '1', '-', 'é', '가', '%', 'C', '0'), maxLength: 20 });
    const host = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join('.'));
    const before = fc.constantFrom(
      ...['https://', 'http:', 'http:\\\\', '//', '/', '', 'custom:', 'custom://', ' ht\ttps://', 'https://u:p@'],
    );
    const after = fc.constantFrom('', '/', ':8080/a?b#c', '?x=@y', '/../z', '\\w');
    fc.assert(
      fc.property(before, host, after, (start, name, end) => {
        const text = `${start}${name}${end}`;
        const expected = URL.parse(text, 'https://base.example/here') ?? undefined;
        const isLong = expected?.hostname.split('.').some((part) => part.length > 63) ?? false;
        const parsed = parseUrl(text, 'https://base.example/here');
        assert.equal(parsed?.href, isLong ? undefined : expected?.href, text);
      }),
      { numRuns: 1000 },
    );
    for (const url of ['http://[::1]:8080/', 'https://1.2.3.4:99/', 'com.example.app:/callback', 'urn:x:y', '?x=1'])
      assert.equal(parseUrl(url, 'https://base.example/')?.href, new URL(url, 'https://base.example/').href);
    const long = `/${'a'.repeat(5000)}`;
    assert.equal(parseUrl(long, 'https://base.example/')?.pathname, long);
    assert.equal(parseUrl('a'.repeat(5000), 'https://base.example/')?.pathname, long);
  });

  it('[find A2] rejects a host that is longer than any name, in every spelling', () => {
    const long = '가'.repeat(2000);
    const spellings = [long, encodeURIComponent(long), 'a'.repeat(64), 'a.'.repeat(130), `u@${long}`, `${long}:80`];
    for (const host of spellings)
      for (const start of [
        ...['https://', 'HTTPS:', 'http:\\/', '//', '\\\\', ' \u0001https://', 'ht\ntps:/\t/', 'wss://', 'file://'],
      ])
        assert.equal(
          parseUrl(`${start}${host}/path`, 'https://base.example/'),
          undefined,
          `${start}${host.slice(0, 9)}`,
        );
  });
});
