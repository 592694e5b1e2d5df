import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkServerConfig } from '@toolhost/tool-config/server-config';
import fc from 'fast-check';
import { getRunCount } from '../../../test/sets.ts';
import { listOutcomes, openApi } from '../../../test/support/import/import-plans.ts';
import { malformedDescriptions, validOperation } from '../../../test/support/import/malformed-descriptions.ts';
import { jsonBody, text } from '../../../test/support/schemas.ts';
import type { Json } from '../../../test/support/toolhost/toolhost.ts';
import { planImport } from './plan/plan-import.ts';
import { readDescription } from './read-description.ts';

/** Allows only public https URLs, like a deployment. */
function urlProblem({ protocol, hostname }: URL): string | undefined {
  if (protocol !== 'https:') return 'allowed: https';
  return /^localhost$|^10\.|^\[/.test(hostname) ? 'is not public' : undefined;
}

describe('import of a partly malformed description', () => {
  it('[imp 1] imports the valid operations, or asks for the address', () => {
    let configuredCount = 0;
    const check = fc.property(malformedDescriptions, (document) => {
      const description = readDescription(JSON.stringify(document));
      const plan = planImport(description, { include: ['*'], deprecated: true }, urlProblem);
      if (!plan.config) {
        assert.ok(plan.questions.some(({ required }) => required));
        return;
      }
      configuredCount++;
      const { problems } = checkServerConfig(plan.config, { managementSlug: 'manage', urlProblem });
      assert.deepEqual(problems, []);
      assert.ok(plan.config.tools.some((tool) => tool.imported_from === validOperation));
      for (const { tool, outcome, notes } of plan.all) {
        assert.equal(tool === undefined, outcome === 'skipped');
        if (outcome !== 'whole') assert.ok(notes.length > 0);
      }
    });
    fc.assert(check, { numRuns: getRunCount(300) });
    assert.ok(configuredCount > getRunCount(100), String(configuredCount));
  });

  it('[imp 3] reports which part was left out, and why', () => {
    const query = (name: string, more: Json = {}) => ({ name, in: 'query', schema: text, ...more });
    const summary = 'Does something that is described';
    const deep = query('filter', { style: 'deepObject', schema: { type: 'object' } });
    const body = (type: string) => ({ content: { [type]: { schema: text } } });
    const object = (name: string) => ({
      type: 'object',
      required: [name],
      properties: { [name]: { type: 'object', additionalProperties: text } },
    });
    const document = openApi(
      {
        '/clash': { get: { summary, parameters: [deep, query('filter[x]')] } },
        '/needed': { get: { summary, parameters: [deep, query('filter[x]', { required: true })] } },
        '/type': { post: { summary, requestBody: body('text/plain\r\nX-Evil: 1') } },
        '/needed-type': { post: { summary, requestBody: { ...body('text/plain\r\nX-Evil: 1'), required: true } } },
        '/name': { get: { summary, parameters: [query('{{TOKEN}}')] } },
        '/dots/../up': { get: { summary } },
        '/host': { get: { summary, security: [{ host: [] }] } },
        '/more': { get: { summary, operationId: 'readMore' } },
        '/called-properties': {
          post: {
            summary,
            parameters: [query('id', { schema: { type: 'string', enum: ['{{A}}', 'b'] } })],
            requestBody: jsonBody(object('properties')),
          },
        },
      },
      { components: { securitySchemes: { host: { type: 'apiKey', in: 'header', name: 'Host' } } } },
    );
    assert.deepEqual(listOutcomes(document), [
      'GET /clash: partial; the query parameter "filter[x]": "filter[x]" is also the name of a possible property of the argument filter; merge both into one argument',
      'GET /needed: skipped; input_schema.filter_x.wire_name: "filter[x]" is also the name of a possible property of the argument filter; merge both into one argument',
      'POST /type: partial; the body of type "text/plain\\r\\nX-Evil: 1"',
      'POST /needed-type: skipped; the body of type "text/plain\\r\\nX-Evil: 1"',
      'GET /name: partial; the query parameter "{{TOKEN}}": variables and secrets are not interpolated in names; write the name out',
      'GET /dots/../up: skipped; a path with . or .. segments',
      'GET /host: skipped; the credential "host" cannot be sent: authentication.header: this header is set by the service or by HTTP itself; remove it',
      'GET /more: whole',
      'POST /called-properties: partial; the query parameter "id": "{{A}}" is not interpolated here and would be sent literally; use a secret or a variable in a constant, "value"',
    ]);
  });
});
