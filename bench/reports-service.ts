/**
 * Starts the service with no limit on the CPU share of reports, so that they can be measured sequentially.
 * Usage: node bench/reports-service.ts, with the environment of `bin/toolhost serve`.
 */
import { defaultRuntimeOptions, start } from '../apps/server/src/process/start.ts';

const running = await start(process.env, { ...defaultRuntimeOptions, reportShare: 1 });
console.log(`toolhost ready ${running.baseUrl}`);
process.once('SIGTERM', () => void running.stop().then(() => process.exit()));
