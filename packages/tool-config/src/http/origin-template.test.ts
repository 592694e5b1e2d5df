import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ToolFailure } from '@toolhost/errors/errors';
import { parseOriginTemplate } from './origin-template.ts';
import { renderOrigin } from './render-origin.ts';

const hosts = ['*.my.salesforce.com', 'login.example.com'];

/** Checks that an error about a value does not repeat it. */
function assertRefused(value: string, render: () => unknown): void {
  assert.throws(render, (error) => {
    assert.ok(error instanceof ToolFailure, value);
    assert.equal(value.trim().length > 2 && error.message.includes(value), false, error.message);
    return true;
  });
}

describe('an origin with the value of a person', () => {
  it('is rendered with a value that is one label of a host', () => {
    const { origin = '' } = parseOriginTemplate('https://{{ site }}.Example.com:8443/a') ?? {};
    assert.equal(origin, 'https://{{site}}.example.com:8443');
    for (const [value, label] of [
      ['acme', 'acme'],
      ['Acme-2', 'acme-2'],
      ['7', '7'],
      ['a'.repeat(63), 'a'.repeat(63)],
    ] as const)
      assert.equal(renderOrigin(origin, { name: 'site', value }), `https://${label}.example.com:8443`);
    for (const value of [
      ...[
        '',
        ' ',
        'a b',
        '-a',
        'a-',
        'a.b',
        'a/',
        'a/b',
        'a#',
        'a?',
        'a@evil.test',
        'a:1',
        'evil.test/',
        'a\\b',
        '%61',
      ],
      ...['xn--bcher-kva', 'XN--a', 'bücher', 'ａ', 'a。b', 'a\n', '{{a}}', '$&', '_a', 'a'.repeat(64)],
    ])
      assertRefused(value, () => renderOrigin(origin, { name: 'site', value }));
  });

  it('is rendered with a whole origin of a declared host', () => {
    const render = (value: string) => renderOrigin('{{instance_url}}', { name: 'instance_url', value, hosts });
    for (const value of ['https://na1.my.salesforce.com', 'https://login.example.com'])
      assert.equal(render(value), value);
    for (const value of [
      ...['http://na1.my.salesforce.com', 'https://my.salesforce.com', 'https://a.b.my.salesforce.com', 'na1'],
      ...['https://na1.my.salesforce.com:8443', 'https://na1.my.salesforce.com/', 'https://na1.my.salesforce.com/x'],
      ...['https://a@na1.my.salesforce.com', 'https://na1.my.salesforce.com?', 'https://na1.my.salesforce.com#'],
      ...['https://na1.my.salesforce.com.', 'https://na1.my.salesforce.com.evil.test', 'https://evil.test', ''],
      ...['https://na1.my.salesforce.com\\@evil.test', ' https://na1.my.salesforce.com', 'https://*.my.salesforce.com'],
    ])
      assertRefused(value, () => render(value));
  });

  it('is found only where a placeholder is the first label or begins the URL', () => {
    for (const url of [
      ...[
        'https://example.com/{{a}}',
        'https://a.{{b}}.example.com',
        'https://{{a}}',
        'https://{{a}}/x',
        'ftp://{{a}}.b.c',
      ],
      ...['https://{{a}}x.example.com', 'https://{{a}}.b@x.example.com', 'https://{{a}}.{{b}}.example.com', '/{{a}}'],
      ...['{{a}}.example.com', '{{a}}x/y', 'https://{{a}}.1.2.3', 'x{{a}}/y', ''],
    ])
      assert.equal(parseOriginTemplate(url), undefined, url);
  });
});
