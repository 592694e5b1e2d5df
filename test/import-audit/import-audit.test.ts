import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { root } from '../files.ts';
import { audit } from './audit.ts';
import { prepareCache } from './cache.ts';
import { chooseSources } from './corpus/sources.ts';
import { createRandom } from './random.ts';
import { formatReport, goals, makeReport, type Report } from './report.ts';

/** Minimum agreement in this sample; `goals` apply to the whole audit. Raise these values as the import improves. */
const minAgreement = { wire: 0.97, outcomes: 0.97 };

describe('import of a small audit sample', () => {
  let report: Report;

  before(async () => {
    const cache = await prepareCache();
    const random = createRandom(7);
    const sources = await chooseSources(cache, random, 20, 100);
    report = makeReport(await audit(sources, { checkout: root, npm: cache.npm, random }));
  });

  it('creates tools whose requests agree with independent readers of the documents [imp 2]', () => {
    assert.ok(report.wire.compared > 60, formatReport(report));
    assert.ok(report.wire.agreement >= Math.min(minAgreement.wire, goals.wire), formatReport(report));
  });

  it('reports outcomes that agree with a comparison of documents and tools [imp 3]', () => {
    assert.ok(report.outcomes.agreement >= Math.min(minAgreement.outcomes, goals.outcomes), formatReport(report));
  });
});
