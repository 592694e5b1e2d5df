import { Button, Group, Stack } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconCopyPlus } from '@tabler/icons-react';
import { useCallFilter } from '../../calls/call-filter.ts';
import { useCanEdit } from '../../frame/session.ts';
import { Busiest, Figures, PeriodSwitch, useCounted } from '../../home/activity.tsx';
import { Failures } from '../../home/failures.tsx';
import { ToLookAt } from '../../home/to-look-at.tsx';
import { Loaded } from '../../ui/states/loaded.tsx';
import { useShownServer } from '../server-page.tsx';
import { DuplicateDialog } from './duplicate-dialog.tsx';
import { needsOf } from './needs-of-server.ts';
import { NoCalls } from './no-calls.tsx';

/** How a server does, and what is to be done about it. */
export function ServerHome() {
  const detail = useShownServer();
  const { server } = detail;
  const calls = useCallFilter({ server: server.slug, usual: '7d' });
  const { period } = calls.filter;
  const counted = useCounted(calls.filter);
  return (
    <Stack gap="md">
      <ToLookAt items={needsOf(detail)} />
      <Group justify="space-between">
        <PeriodSwitch period={period} onChange={(next) => calls.change('period', next)} />
        <Duplicate />
      </Group>
      <Loaded query={counted}>
        {(statistics) =>
          statistics?.by_server.length ? (
            <>
              <Figures counted={statistics} isOfServer />
              <Failures {...calls} />
              <Busiest counted={statistics} server={server.slug} period={period} />
            </>
          ) : (
            <NoCalls slug={server.slug} />
          )
        }
      </Loaded>
    </Stack>
  );
}

function Duplicate() {
  const [isOpen, dialog] = useDisclosure(false);
  if (!useCanEdit()) return null;
  return (
    <>
      <Button variant="default" size="xs" leftSection={<IconCopyPlus size={15} />} onClick={dialog.open}>
        Duplicate to…
      </Button>
      <DuplicateDialog opened={isOpen} onClose={dialog.close} />
    </>
  );
}
