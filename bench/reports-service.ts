/**
 * The service, but with reports that may take all of the time, so that they can be measured one after the other.
 * Usage: node bench/reports-service.ts, with the environment of `bin/toolhost serve`.
 */
import { defaultRuntimeOptions, start } from '../src/process/start.ts';

const running = await start(process.env, { ...defaultRuntimeOptions, reportShare: 1 });
console.log(`toolhost ready ${running.baseUrl}`);
process.once('SIGTERM', () => void running.stop().then(() => process.exit()));
