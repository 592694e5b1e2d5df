import { codex } from '../../support/agents/agent-kinds.ts';
import { testAgent } from '../../support/agents/agent-rules.ts';

testAgent(codex);
