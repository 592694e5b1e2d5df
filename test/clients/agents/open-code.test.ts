import { openCode } from '../../support/agents/agent-kinds.ts';
import { checkAgent } from '../../support/agents/agent-rules.ts';

checkAgent(openCode);
