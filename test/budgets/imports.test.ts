import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { adversarialDocuments, createReferencingDocument } from '../support/import/adversarial-documents.ts';
import { readCorpus } from '../support/import/corpus.ts';
import { openApi } from '../support/import/import-plans.ts';
import { type CpuBudgetToolhost, startCpuBudgetToolhost } from '../support/toolhost/cpu-budget-toolhost.ts';

describe('CPU budget of imports', () => {
  let toolhost: CpuBudgetToolhost;
  before(async () => {
    toolhost = await startCpuBudgetToolhost();
  });
  after(() => toolhost.stop());

  for (const { what, text, gives } of adversarialDocuments) {
    it(`[imp 1] imports an adversarial document without delaying calls: ${what}`, async () => {
      const body = JSON.stringify({ document: text(), include: ['*'] });
      const reply = await toolhost.assertWithinBudget(what, () => toolhost.rest('POST', '/import', body));
      if (typeof gives === 'number') {
        assert.equal(reply.status, 200, reply.text.slice(0, 500));
        assert.equal((reply.body.operations as { operations: number }).operations, gives);
      } else {
        assert.equal(reply.status, 400, reply.text.slice(0, 500));
        assert.match(reply.text, gives);
      }
    });
  }

  it('[imp 1] fetches nothing that a document references', async () => {
    const addresses = [
      `${toolhost.upstream.url}/schema.json`,
      'file:///etc/passwd',
      'http://169.254.169.254/latest/meta-data',
    ];
    for (const address of addresses) {
      const { status, text } = await toolhost.rest('POST', '/import', {
        document: createReferencingDocument(address),
        include: ['*'],
        report: 'all',
      });
      assert.equal(status, 200, text);
      assert.match(text, /which is not fetched/);
    }
    assert.deepEqual(toolhost.upstream.take(), []);
  });

  it('[imp 1] searches millions of references for external files without delaying calls', async () => {
    const references = Array.from({ length: 2_000_000 }, () => '{"$ref":"#"}').join();
    toolhost.upstream.on('GET /references.json', () => ({ body: `{"openapi":"3.1.0","x":[${references}]}` }));
    const request = { url: `${toolhost.upstream.url}/references.json` };
    const { status } = await toolhost.assertWithinBudget('millions of references', () =>
      toolhost.rest('POST', '/import', request),
    );
    assert.equal(status, 400);
  });

  it('[imp 1] rejects an import whose shared schema expands to more than the configuration size limit', async () => {
    const values = Array.from({ length: 100 }, (_, index) => `${index}${'x'.repeat(100)}`);
    const properties = Object.fromEntries(
      Array.from({ length: 14 }, (_, index) => [`p${index}`, { type: 'string', enum: values }]),
    );
    const schema = { $ref: '#/components/schemas/Thing' };
    const post = { summary: 'Makes a thing', requestBody: { content: { 'application/json': { schema } } } };
    const makeDocument = (count: number) =>
      openApi(Object.fromEntries(Array.from({ length: count }, (_, index) => [`/p${index}`, { post }])), {
        components: { schemas: { Thing: { type: 'object', properties, required: Object.keys(properties) } } },
      });
    const request = { slug: 'shared', document: JSON.stringify(makeDocument(100)), include: ['*'] };
    const create = () => toolhost.rest('POST', '/import', { ...request, mode: 'create' });
    const refused = await toolhost.assertWithinBudget('create of 14 MB', create);
    assert.equal(refused.status, 400, refused.text.slice(0, 300));
    assert.match(refused.text, /include: the configuration of the chosen operations is too large \(14.1 MB\)/);
    const plan = await toolhost.rest('POST', '/import', request);
    assert.match(String(plan.body.notes), /too large .14.1 MB.; allowed: at most 4 MB/);
    const smallRequest = { ...request, include: ['/p1', '/p2'], mode: 'create' };
    assert.equal((await toolhost.rest('POST', '/import', smallRequest)).status, 200);
    const reimport = () => toolhost.rest('POST', '/servers/shared/import', { document: request.document, add: ['*'] });
    const added = await toolhost.assertWithinBudget('reimport with 14 MB', reimport);
    assert.equal(added.status, 400, added.text.slice(0, 300));
    assert.match(added.text, /add: the configuration of the chosen operations is too large/);
  });

  it('[imp 1] leaves long texts of the document out of the plan', async () => {
    const long = 'x'.repeat(100_000);
    const get = { summary: 'Gets a thing of some kind', security: [{ [long]: [] }, { short: [] }, { other: [] }] };
    const paths = Array.from({ length: 60 }, (_, index) => [`/p${index}`, { get: { ...get, tags: [index + long] } }]);
    const securitySchemes = {
      [long]: { type: 'http', scheme: 'bearer' },
      short: { type: 'http', scheme: 'basic' },
      other: { type: 'apiKey', in: 'header', name: 'X-Key' },
    };
    const r = { default: 'a', enum: ['a', 'b', long] };
    const s = { default: long };
    const servers = [{ url: 'https://{r}.example.com/{s}', variables: { r, s } }];
    const document = JSON.stringify(openApi(Object.fromEntries(paths), { servers, components: { securitySchemes } }));
    const plan = await toolhost.rest('POST', '/import', { document });
    assert.equal(plan.status, 200);
    assert.doesNotMatch(plan.text, /x{1000}/);
    assert.match(plan.text, /"value":"b"/);
    assert.match(plan.text, /"value":"short"/);
  });

  it('[imp 1] rejects a document of 100 MB before parsing it', async () => {
    const { status } = await toolhost
      .rest('POST', '/import', `{"document":"${'x'.repeat(100 * 1024 * 1024)}"}`)
      .catch(() => ({ status: 413 }));
    assert.equal(status, 413);
  });

  it('[imp 1] fetches a document of 30 MB for a plan or a comparison without delaying calls', async () => {
    let revision = 0;
    const respond = () => {
      const summary = `List the things of turn ${++revision}`;
      const paths = { '/things': { get: { operationId: 'listThings', summary } } };
      const small = openApi(paths, { servers: [{ url: 'https://things.example.com' }] });
      return { body: JSON.stringify({ ...small, 'x-filler': 'ü'.repeat(14 * 1024 * 1024) }) };
    };
    toolhost.upstream.on('GET /large.json', respond);
    const request = { url: `${toolhost.upstream.url}/large.json`, slug: 'large', include: ['*'] };
    const plan = await toolhost.assertWithinBudget('plan', () =>
      toolhost.rest('POST', '/import', { ...request, mode: 'plan' }),
    );
    assert.equal(plan.status, 200, plan.text.slice(0, 300));
    assert.equal((await toolhost.rest('POST', '/import', { ...request, mode: 'create' })).status, 200);
    const compared = await toolhost.assertWithinBudget('compare', () =>
      toolhost.rest('POST', '/servers/large/import/compare'),
    );
    assert.equal((compared.body.imported as { changed: boolean }).changed, true, compared.text.slice(0, 300));
  });

  it('[imp 1] does not accumulate answers across repeated imports', async () => {
    const document = (summary: string) =>
      JSON.stringify(
        openApi(
          { '/things': { get: { operationId: 'listThings', summary } } },
          { servers: [{ url: 'https://a.example' }] },
        ),
      );
    const createRequest = { mode: 'create', document: document('List the things'), slug: 'answered', include: ['*'] };
    assert.equal((await toolhost.rest('POST', '/import', createRequest)).status, 200);
    const makeAnswers = (revision: number, count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`answer ${revision} ${i}`, 'x'.repeat(4096)]));
    const reimport = (label: string, body: object) =>
      toolhost.assertWithinBudget(label, () => toolhost.rest('POST', '/servers/answered/import', JSON.stringify(body)));
    for (const revision of [1, 2, 3]) {
      const request = { mode: 'apply', document: document(`List the things of turn ${revision}`) };
      const refused = await reimport('too many answers', { ...request, answers: makeAnswers(revision, 240) });
      assert.equal(refused.status, 400);
      assert.match(refused.text, /at most 100 answers/);
      const accepted = await reimport('100 answers', { ...request, answers: makeAnswers(revision, 100) });
      assert.equal(accepted.status, 200, accepted.text.slice(0, 300));
    }
    const plan = await reimport('a plan after that', { document: document('List them all') });
    assert.equal(plan.status, 200, plan.text.slice(0, 300));
  });

  it('[find A1] parses a document of 16 MB that is sent as text without delaying calls, whatever text it contains', async () => {
    const encodeBody = (text: string) => JSON.stringify({ document: JSON.stringify(text) });
    const paths = { '/things': { get: { operationId: 'listThings', summary: 'List the things' } } };
    for (const piece of ['"', '\\', 'a\nb', 'x', 'é', '€', '\u0001']) {
      const bytesOfPiece = Buffer.byteLength(encodeBody(piece)) - Buffer.byteLength(encodeBody(''));
      const description = piece.repeat(15_900_000 / bytesOfPiece);
      const small = openApi(paths, { servers: [{ url: 'https://things.example.com' }] });
      const body = JSON.stringify({ document: JSON.stringify({ ...small, 'x-long': description }) });
      const { status, text } = await toolhost.assertWithinBudget(JSON.stringify(piece), () =>
        toolhost.rest('POST', '/import', body),
      );
      assert.equal(status, 200, text.slice(0, 300));
    }
  });

  it('[find A1] parses a document of 4 MB from an MCP message without delaying calls, whatever text it contains', async () => {
    for (const piece of ['"', '\\', '€']) {
      const bytesOfPiece = Buffer.byteLength(JSON.stringify(piece)) - 2;
      const document = `curl https://things.example.com ${piece.repeat(4_190_000 / bytesOfPiece)}`;
      const { status, text } = await toolhost.assertWithinBudget(JSON.stringify(piece), () =>
        toolhost.call('manage', 'importApi', JSON.stringify({ document })),
      );
      assert.equal(status, 200, text.slice(0, 300));
    }
  });

  it('[imp 1] matches selectors with many wildcards without backtracking', async () => {
    const operation = (name: string) => ({ get: { operationId: name, summary: 'Get the thing of this name' } });
    const names = Array.from({ length: 20 }, (_, i) => `${'a'.repeat(120)}${i}`);
    const document = JSON.stringify(
      openApi(Object.fromEntries(names.map((name) => [`/${name}`, operation(name)])), {
        servers: [{ url: 'https://things.example.com' }],
      }),
    );
    const hard = 'a*'.repeat(100);
    const include = [`${hard}b`, `${hard}19`, '*A7', 'a*a*11', '**', `/${hard}3`];
    const plan = await toolhost.rest('POST', '/import', {
      document,
      include: [`${hard}b`, `${hard}19`, '*A7', `/${hard}3`],
    });
    assert.equal(plan.status, 200, plan.text.slice(0, 300));
    assert.deepEqual((plan.body.chosen as { tools: number }).tools, 4);
    assert.deepEqual(plan.body.unmatched, [`${hard}b`]);
    const all = await toolhost.rest('POST', '/import', { document, include });
    assert.equal((all.body.chosen as { tools: number }).tools, 20);
  });

  it('[imp 1] imports the GitHub API description without delaying calls', async () => {
    const document = (await readCorpus()).find(({ name }) => name.startsWith('github.com'))?.text;
    const body = JSON.stringify({ document, include: ['*'] });
    const { body: plan } = await toolhost.assertWithinBudget('GitHub', () => toolhost.rest('POST', '/import', body));
    assert.equal((plan.operations as { operations: number }).operations, 845);
  });
});
