/** The hostile upstream of the tests as a process of its own. Usage: node bench/hostile.ts */
import { startHostileUpstream } from '../test/support/upstreams/hostile-upstream.ts';

const upstream = await startHostileUpstream();
console.log(`ready ${upstream.url}`);
