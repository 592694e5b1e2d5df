/** Runs the adversarial upstream of the tests in a separate process. Usage: node bench/hostile.ts */
import { startHostileUpstream } from '../test/support/upstreams/hostile-upstream.ts';

const upstream = await startHostileUpstream();
console.log(`ready ${upstream.url}`);
