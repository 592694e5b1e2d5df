/** Runs the adversarial upstream of the tests in a separate process. Usage: node bench/hostile.ts */
import { startAdversarialUpstream } from '../test/support/upstreams/adversarial-upstream.ts';

const upstream = await startAdversarialUpstream();
console.log(`ready ${upstream.url}`);
