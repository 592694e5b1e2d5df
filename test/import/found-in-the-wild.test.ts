import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readDescription } from '../../src/import/read-description.ts';
import { configOf, onlyTool, openApi, planOf } from '../support/import/plan-of.ts';
import type { Json } from '../support/toolhost/toolhost.ts';

const text = { type: 'string' };

/** A document with one operation that has these parameters. */
const withParameters = (parameters: Json[], more: Json = {}) =>
  openApi({ '/incidents': { get: { operationId: 'listIncidents', summary: 'List all incidents', parameters } } }, more);

/** Each test is a small copy of what a published description does. */
describe('descriptions as they are published', () => {
  it('[imp 2] a header for the version of the answer is sent, with its parameters (PagerDuty)', () => {
    const accept = {
      name: 'Accept',
      in: 'header',
      required: true,
      schema: { ...text, default: 'application/vnd.pagerduty+json;version=2' },
    };
    assert.deepEqual(onlyTool(withParameters([accept])).headers, {
      Accept: 'application/vnd.pagerduty+json;version=2',
    });
    const unsure = { ...accept, required: false };
    assert.equal(onlyTool(withParameters([unsure])).headers, undefined);
  });

  it('[imp 2] the words before a key are kept to the last character (PagerDuty)', () => {
    for (const [description, token] of [
      ['The API Key with format `Token token=<API_KEY>`', 'Token token={{KEY}}'],
      ['Format: `Token <key>`', 'Token {{KEY}}'],
    ]) {
      const key = { type: 'apiKey', name: 'Authorization', in: 'header', description };
      const document = withParameters([], { components: { securitySchemes: { key } }, security: [{ key: [] }] });
      assert.deepEqual(configOf(planOf(document)).authentication, { type: 'ApiKey', token });
    }
  });

  it('[imp 2] a query parameter with brackets takes a list, also where its schema has one value (PagerDuty)', () => {
    const statuses = { name: 'statuses[]', in: 'query', schema: { ...text, enum: ['triggered', 'resolved'] } };
    const fields = onlyTool(withParameters([statuses])).input_schema as { statuses: Json };
    assert.deepEqual([fields.statuses.type, fields.statuses.wire_name], ['array', 'statuses[]']);
    const document = {
      swagger: '2.0',
      host: 'api.example.com',
      paths: {
        '/incidents': {
          get: { summary: 'List all incidents', parameters: [{ name: 'ids[]', in: 'query', type: 'string' }] },
        },
      },
    };
    const swagger = onlyTool(document).input_schema as { ids: Json };
    assert.deepEqual([swagger.ids.type, swagger.ids.style], ['array', undefined]);
  });

  it('[imp 2] an answer that is raw text is not asked for where there is another one (GitHub)', () => {
    const content = { 'application/vnd.github.raw+json': {}, 'application/vnd.github.html+json': {} };
    const get = { summary: 'Get the readme of a repository', responses: { 200: { content } } };
    assert.deepEqual(onlyTool(openApi({ '/readme': { get } })).headers, { Accept: 'application/vnd.github.html+json' });
  });

  it('[imp 2] a slug is short, without words that say nothing, so that names of tools fit into clients', () => {
    const slugs: [string, string][] = [
      ["Netlify's API documentation", 'netlify'],
      ['API Reference', 'example'],
      ['Twilio SendGrid Marketing Campaigns Designs', 'twilio-sendgrid'],
      ['The Example REST API v2', 'example'],
      ['Öffentliche Dienste', 'offentliche-dienste'],
      ['API', 'example'],
      ['X', 'x-api'],
    ];
    for (const [title, slug] of slugs) {
      const document = withParameters([], { info: { title, version: '1' } });
      assert.equal(configOf(planOf(document)).slug, slug, title);
    }
  });

  it('[imp 1] operations in other files are named, with what makes one file of them (DigitalOcean)', () => {
    const document = openApi({ '/v2/droplets': { get: { $ref: 'resources/droplets/list.yml' } } });
    assert.throws(() => readDescription(JSON.stringify(document)), /resources\/droplets\/list\.yml.*bundle/);
    const partly = { '/v2/droplets': { get: { $ref: 'list.yml' } }, '/v2/keys': { get: { summary: 'List all keys' } } };
    assert.match(JSON.stringify(planOf(openApi(partly)).findings), /refers to .*list\.yml.*not fetched/);
  });

  it('[imp 1] a script is read with its variables, and a key of one request is an argument (Stripe)', () => {
    const script = `#!/usr/bin/env bash
set -e
export ADDR="https://api.example.com"
TOKEN="eyJhbGciOiJI"
curl -v -X POST -H "Content-Type: application/json" -H "Authorization: Bearer \${TOKEN}" \\
  --data "{\\"body\\":\\"\${BODY}\\",\\"n\\":$N}" "\${ADDR:-x}/v1/secret/$ID?q=$Q"
curl $ADDR/v1/charges -u sk_test_4eC39: -d 'amount=$2000' -H "Idempotency-Key: KG5LxwFBepaKHyUD"`;
    const plan = planOf(script, { include: ['*'], answers: { ADDR: 'https://api.example.com', credential: 'none' } });
    assert.deepEqual(
      plan.all.map(({ operation }) => [operation.method, operation.path, operation.inputs.map(({ name }) => name)]),
      [
        ['POST', '/v1/secret/{ID}', ['ID', 'q']],
        ['POST', '/v1/charges', ['Idempotency-Key']],
      ],
    );
    assert.doesNotMatch(JSON.stringify(plan), /eyJhbGciOiJI|sk_test|KG5LxwFB/);
    assert.match(JSON.stringify(plan.all[1]?.operation.body), /\$2000/, 'single quotes keep what is in them');
    const short = planOf('curl "$ADDR/v1/charges"', { include: ['*'], answers: { ADDR: 'api.example.com' } });
    assert.equal(configOf(short).base_url, 'https://api.example.com');
    const host = planOf('curl https://api.stripe.com/v1/charges -d amount=1', { include: ['*'] });
    assert.equal(configOf(host).slug, 'stripe');
  });

  it('[imp 1] a collection whose addresses have only their parts is read, and no key is shared by requests (Lob)', () => {
    const collection = {
      info: { name: 'Lob' },
      variable: [{ key: 'baseUrl', value: 'https://api.lob.com/v1' }],
      item: [
        {
          name: 'Create an address',
          request: {
            method: 'POST',
            header: [
              { key: 'Idempotency-Key', value: '<string>' },
              { key: 'X-Region', value: '<string>' },
            ],
            url: {
              host: ['{{baseUrl}}'],
              path: ['addresses', ':adr_id'],
              query: [
                { key: 'limit', value: '10' },
                { key: 'before', value: '<string>', disabled: true },
              ],
              variable: [{ key: 'adr_id', value: '' }],
            },
          },
        },
        {
          name: 'Health',
          request: { url: { protocol: 'https', host: ['api', 'lob', 'com'], port: '8443', path: 'health' } },
        },
      ],
    };
    const { tools, base_url, authentication } = configOf(planOf(collection));
    assert.deepEqual([base_url, authentication], ['https://api.lob.com', undefined]);
    assert.deepEqual(
      tools.map(({ method, url, headers }) => [method, url, headers]),
      [
        ['POST', '/v1/addresses/:adr_id', undefined],
        ['GET', 'https://api.lob.com:8443/health', undefined],
      ],
    );
    const [first] = tools;
    assert.deepEqual(
      Object.keys(first?.input_schema ?? {}).sort(),
      ['Idempotency-Key', 'X-Region', 'adr_id', 'before', 'limit'].sort(),
    );
  });
});
