import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { adversarialDocuments, createReferencingDocument } from '../support/import/adversarial-documents.ts';
import { readCorpus } from '../support/import/corpus.ts';
import { openApi } from '../support/import/import-plans.ts';
import { makeObject, times } from '../support/long-values.ts';
import { type HttpReply, useCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';

describe('CPU budget of imports', () => {
  const toolhost = useCpuBudgetToolhost();
  const include = ['*'];
  const importApi = (request: object | string) => toolhost.rest('POST', '/import', request);
  /** Imports within the CPU budget. */
  const measureImport = (label: string, request: object) => toolhost.measure(label).rest('POST', '/import', request);
  const assertStatus = ({ status, text }: HttpReply, expected: number) =>
    assert.equal(status, expected, text.slice(0, 500));
  const makeDocument = (summary: string) =>
    openApi(
      { '/things': { get: { operationId: 'listThings', summary } } },
      { servers: [{ url: 'https://a.example' }] },
    );

  for (const { what, text, gives } of adversarialDocuments) {
    it(`[imp 1] imports an adversarial document without delaying calls: ${what}`, async () => {
      const reply = await measureImport(what, { document: text(), include });
      assertStatus(reply, typeof gives === 'number' ? 200 : 400);
      if (typeof gives === 'number') assert.equal((reply.body.operations as { operations: number }).operations, gives);
      else assert.match(reply.text, gives);
    });
  }

  it('[imp 1] fetches nothing that a document references', async () => {
    const ownAddress = `${toolhost.upstream.url}/schema.json`;
    for (const address of [ownAddress, 'file:///etc/passwd', 'http://169.254.169.254/latest/meta-data']) {
      const reply = await importApi({ document: createReferencingDocument(address), include, report: 'all' });
      assertStatus(reply, 200);
      assert.match(reply.text, /which is not fetched/);
    }
    assert.deepEqual(toolhost.upstream.take(), []);
  });

  it('[imp 1] searches millions of references for external files without delaying calls', async () => {
    const references = times(2_000_000, () => '{"$ref":"#"}').join();
    toolhost.upstream.on('GET /references.json', () => ({ body: `{"openapi":"3.1.0","x":[${references}]}` }));
    assertStatus(await measureImport('references', { url: `${toolhost.upstream.url}/references.json` }), 400);
  });

  it('[imp 1] rejects an import whose shared schema expands to more than the configuration size limit', async () => {
    const values = times(100, (index) => `${index}${'x'.repeat(100)}`);
    const properties = makeObject(14, (index) => [`p${index}`, { type: 'string', enum: values }]);
    const schema = { $ref: '#/components/schemas/Thing' };
    const post = { summary: 'Makes a thing', requestBody: { content: { 'application/json': { schema } } } };
    const paths = makeObject(100, (index) => [`/p${index}`, { post }]);
    const schemas = { Thing: { type: 'object', properties, required: Object.keys(properties) } };
    const document = JSON.stringify(openApi(paths, { components: { schemas } }));
    const request = { slug: 'shared', document, include };
    const refused = await measureImport('create of 14 MB', { ...request, mode: 'create' });
    assertStatus(refused, 400);
    assert.match(refused.text, /include: the configuration of the chosen operations is too large \(14.1 MB\)/);
    const plan = await importApi(request);
    assert.match(String(plan.body.notes), /too large .14.1 MB.; allowed: at most 4 MB/);
    assertStatus(await importApi({ ...request, include: ['/p1', '/p2'], mode: 'create' }), 200);
    const reimport = { document, add: ['*'] };
    const added = await toolhost.measure('reimport of 14 MB').rest('POST', '/servers/shared/import', reimport);
    assertStatus(added, 400);
    assert.match(added.text, /add: the configuration of the chosen operations is too large/);
  });

  it('[imp 1] leaves long texts of the document out of the plan', async () => {
    const long = 'x'.repeat(100_000);
    const get = { summary: 'Gets a thing of some kind', security: [{ [long]: [] }, { short: [] }, { other: [] }] };
    const paths = makeObject(60, (index) => [`/p${index}`, { get: { ...get, tags: [index + long] } }]);
    const securitySchemes = {
      [long]: { type: 'http', scheme: 'bearer' },
      short: { type: 'http', scheme: 'basic' },
      other: { type: 'apiKey', in: 'header', name: 'X-Key' },
    };
    const r = { default: 'a', enum: ['a', 'b', long] };
    const s = { default: long };
    const servers = [{ url: 'https://{r}.example.com/{s}', variables: { r, s } }];
    const document = JSON.stringify(openApi(paths, { servers, components: { securitySchemes } }));
    const plan = await importApi({ document });
    assertStatus(plan, 200);
    assert.doesNotMatch(plan.text, /x{1000}/);
    assert.match(plan.text, /"value":"b"/);
    assert.match(plan.text, /"value":"short"/);
  });

  it('[imp 1] rejects a document of 100 MB before parsing it', async () => {
    const body = `{"document":"${'x'.repeat(100 * 1024 * 1024)}"}`;
    assert.equal((await importApi(body).catch(() => ({ status: 413 }))).status, 413);
  });

  it('[imp 1] fetches a document of 30 MB for a plan or a comparison without delaying calls', async () => {
    let revision = 0;
    toolhost.upstream.on('GET /large.json', () => {
      const small = makeDocument(`List the things of turn ${++revision}`);
      return { body: JSON.stringify({ ...small, 'x-filler': 'ü'.repeat(14 * 1024 * 1024) }) };
    });
    const request = { url: `${toolhost.upstream.url}/large.json`, slug: 'large', include };
    assertStatus(await measureImport('plan', { ...request, mode: 'plan' }), 200);
    assertStatus(await importApi({ ...request, mode: 'create' }), 200);
    const compared = await toolhost.measure('compare').rest('POST', '/servers/large/import/compare');
    assert.equal((compared.body.imported as { changed: boolean }).changed, true, compared.text.slice(0, 300));
  });

  it('[imp 1] does not accumulate answers across repeated imports', async () => {
    const document = (summary: string) => JSON.stringify(makeDocument(summary));
    const request = { mode: 'create', document: document('List the things'), slug: 'answered', include };
    assertStatus(await importApi(request), 200);
    const reimport = (body: object) =>
      toolhost.measure(JSON.stringify(body).slice(0, 200)).rest('POST', '/servers/answered/import', body);
    for (const revision of [1, 2, 3]) {
      const apply = (answerCount: number) =>
        reimport({
          mode: 'apply',
          document: document(`List the things of turn ${revision}`),
          answers: makeObject(answerCount, (i) => [`answer ${revision} ${i}`, 'x'.repeat(4096)]),
        });
      const refused = await apply(240);
      assertStatus(refused, 400);
      assert.match(refused.text, /at most 100 answers/);
      assertStatus(await apply(100), 200);
    }
    assertStatus(await reimport({ document: document('List them all') }), 200);
  });

  it('[find A1] parses a document of 16 MB that is sent as text without delaying calls, whatever text it contains', async () => {
    const encodeBody = (text: string) => JSON.stringify({ document: JSON.stringify(text) });
    for (const piece of ['"', '\\', 'a\nb', 'x', 'é', '€', '\u0001']) {
      const bytesOfPiece = Buffer.byteLength(encodeBody(piece)) - Buffer.byteLength(encodeBody(''));
      const description = piece.repeat(15_900_000 / bytesOfPiece);
      const document = JSON.stringify({ ...makeDocument('List the things'), 'x-long': description });
      assertStatus(await measureImport(JSON.stringify(piece), { document }), 200);
    }
  });

  it('[find A1] parses a document of 4 MB from an MCP message without delaying calls, whatever text it contains', async () => {
    for (const piece of ['"', '\\', '€']) {
      const bytesOfPiece = Buffer.byteLength(JSON.stringify(piece)) - 2;
      const document = `curl https://things.example.com ${piece.repeat(4_190_000 / bytesOfPiece)}`;
      const args = JSON.stringify({ document });
      assertStatus(await toolhost.measure(JSON.stringify(piece)).call('manage', 'importApi', args), 200);
    }
  });

  it('[imp 1] matches selectors with many wildcards without backtracking', async () => {
    const paths = makeObject(20, (i) => {
      const operationId = `${'a'.repeat(120)}${i}`;
      return [`/${operationId}`, { get: { operationId, summary: 'Get the thing of this name' } }];
    });
    const document = JSON.stringify(openApi(paths, { servers: [{ url: 'https://things.example.com' }] }));
    const hard = 'a*'.repeat(100);
    const selectors = [`${hard}b`, `${hard}19`, '*A7', `/${hard}3`];
    const plan = await importApi({ document, include: selectors });
    assertStatus(plan, 200);
    assert.deepEqual((plan.body.chosen as { tools: number }).tools, 4);
    assert.deepEqual(plan.body.unmatched, [`${hard}b`]);
    const all = await importApi({ document, include: [...selectors, 'a*a*11', '**'] });
    assert.equal((all.body.chosen as { tools: number }).tools, 20);
  });

  it('[imp 1] imports the GitHub API description without delaying calls', async () => {
    const document = (await readCorpus()).find(({ name }) => name.startsWith('github.com'))?.text;
    const { body: plan } = await measureImport('GitHub', { document, include });
    assert.equal((plan.operations as { operations: number }).operations, 845);
  });
});
