import { CallBrowser } from '../../calls/calls-page.tsx';
import { useShownServer } from '../server-page.tsx';

export function CallsTab() {
  return <CallBrowser server={useShownServer().server.slug} />;
}
