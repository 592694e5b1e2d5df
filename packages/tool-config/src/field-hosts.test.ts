import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { getFieldHosts, type HostSources } from './field-hosts.ts';

const login = { fields: [{ name: 'SITE' }, { name: 'KEY' }] };

function assertHosts(config: HostSources, site: string[], key: string[]): void {
  assert.deepEqual(Object.fromEntries(getFieldHosts({ login, ...config })), { SITE: site, KEY: key });
}

describe('the hosts that receive the values of a login', () => {
  it('include the hosts of the tools that use a value, with variables and the base URL', () => {
    const tools = [
      { url: '/a', headers: { 'X-Key': '{{KEY}}' } },
      { url: 'https://{{SITE}}.example.com/b', input_schema: { key: { type: 'string', value: '{{ KEY }}' } } },
      { url: 'https://off.example.com/{{KEY}}', disabled: true },
      { url: 'https://other.example.com/c', description: '{{KEY}}', input_schema: { key: { description: '{{KEY}}' } } },
    ];
    const variables = { region: { value: 'eu' } };
    const site = ['{{SITE}}.example.com'];
    assertHosts({ base_url: 'https://{{region}}.example.com/', variables, tools }, site, ['eu.example.com', ...site]);
  });

  it('include the hosts of a shared credential only for the tools that send it', () => {
    const authentication = { type: 'Bearer', token: '{{KEY}}' };
    const credentials = { second: [{ type: 'ApiKey', header: 'X-Site', token: '{{SITE}}' }] };
    const tools = [
      { url: 'https://a.example.com/' },
      { url: 'https://b.example.com/', credential: 'second' },
      { url: 'https://c.example.com/', credential: 'none' },
    ];
    assertHosts({ authentication, credentials, tools }, ['b.example.com'], ['a.example.com']);
  });

  it('include the declared hosts of a whole origin and the hosts of the OAuth provider', () => {
    const oauth = {
      authorization_url: 'https://{{SITE}}.login.example.com/authorize',
      token_url: 'https://token.example.com/?key={{KEY}}',
      values: { instance: { from: 'instance_url', hosts: ['*.Data.example.com'] } },
    };
    const tools = [{ url: '{{instance}}/items', headers: { 'X-Key': '{{KEY}}' } }];
    assertHosts({ oauth, tools }, ['{{SITE}}.login.example.com'], ['*.data.example.com', 'token.example.com']);
  });

  it('are empty for a configuration that is being edited and has values of wrong types', () => {
    assert.deepEqual(getFieldHosts({ login: 'none', tools: 5 }), new Map());
    const oauth = { token_url: 7, values: { instance: null } };
    const tools = [null, 4, { url: null }, { url: '{{instance}}/', input_schema: [null] }];
    assertHosts({ oauth, tools, variables: [], base_url: {}, credentials: null }, [], []);
  });
});
