import { Alert, AppShell, Burger, Button, Container, Group, Text } from '@mantine/core';
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import { IconLock, IconWifiOff } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useEffect, useReducer, useState } from 'react';
import { Outlet, ScrollRestoration, useLocation, useNavigation } from 'react-router';
import { ApiProblem } from '../api.ts';
import { basePath } from '../base-path.ts';
import { refetchQueries } from '../query-client.ts';
import { queryKeys } from '../query-keys.ts';
import { Empty } from '../ui/states/empty.tsx';
import { LoadingPage } from '../ui/states/loading.tsx';
import { ProblemAlert } from '../ui/states/problem-alert.tsx';
import { Logo } from './logo.tsx';
import { Navigation } from './navigation.tsx';
import { SessionProvider, useSessionQuery } from './session.ts';
import { useFlag } from './use-flag.ts';
import { useTypedAhead } from './use-typed-ahead.ts';

const Palette = lazy(async () => ({ default: (await import('./palette.tsx')).Palette }));

/** Frame around every page. Users whose session has ended see a link to sign in. */
export function Frame() {
  const session = useSessionQuery();
  if (session.data) {
    return (
      <SessionProvider value={session.data}>
        <Shell />
      </SessionProvider>
    );
  }
  if (session.error instanceof ApiProblem && session.error.status === 401) return <SignedOut />;
  if (session.error) {
    return (
      <Container size="xs" pt={80}>
        <ProblemAlert error={session.error} onRetry={() => session.refetch()} />
      </Container>
    );
  }
  return <LoadingPage />;
}

/** Page for a cookie whose session has ended. Without a cookie, the service serves the landing page. */
function SignedOut() {
  const { pathname, search } = useLocation();
  return (
    <main className="th-splash">
      <Empty order={1} icon={<IconLock />} title="You are not signed in" text="Your session has ended.">
        <Button component="a" href={`${basePath}/login?return_to=${encodeURIComponent(basePath + pathname + search)}`}>
          Sign in
        </Button>
      </Empty>
    </main>
  );
}

function Shell() {
  const [isOpen, menu] = useDisclosure(false);
  const [searchRequests, openSearch] = useReducer((count: number) => count + 1, 0);
  useHotkeys([['mod+K', openSearch]], [], true);
  const takeTyped = useTypedAhead(searchRequests);
  const { pathname } = useLocation();
  const isLoading = useNavigation().state === 'loading';
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu closes whenever the page changes
  useEffect(() => menu.close(), [pathname]);
  return (
    <AppShell
      header={{ height: { base: 56, sm: 0 } }}
      navbar={{ width: 224, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
      padding={{ base: 'md', sm: 'xl' }}
    >
      <a className="th-skip" href="#main">
        Skip to content
      </a>
      <AppShell.Header hiddenFrom="sm" px="md">
        <Group h="100%" justify="space-between">
          <Logo />
          <Burger
            opened={isOpen}
            onClick={menu.toggle}
            size="sm"
            aria-label={isOpen ? 'Close menu' : 'Open menu'}
            aria-expanded={isOpen}
          />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="sm" className="th-side-bar" aria-label="Sidebar" component="aside">
        <Navigation onSearch={openSearch} />
      </AppShell.Navbar>
      <AppShell.Main id="main" tabIndex={-1}>
        <Progress isActive={isLoading} />
        <div className="th-page">
          <div className="th-notices">
            <SessionAlert />
            <ConnectionAlert />
          </div>
          <Suspense fallback={<LoadingPage />}>
            <Outlet />
          </Suspense>
        </div>
      </AppShell.Main>
      <ScrollRestoration />
      {searchRequests > 0 && (
        <Suspense>
          <Palette searchRequests={searchRequests} takeTyped={takeTyped} />
        </Suspense>
      )}
    </AppShell>
  );
}

const progressStyle = {
  position: 'fixed',
  top: 0,
  left: 0,
  right: 0,
  height: 2,
  zIndex: 400,
  background: 'var(--th-accent)',
  transformOrigin: 'left',
} as const;

/** Thin line at the top while the next page loads, shown after 100 ms. */
function Progress({ isActive }: { isActive: boolean }) {
  const [isVisible, setVisible] = useState(false);
  useEffect(() => {
    if (!isActive) return setVisible(false);
    const timer = setTimeout(() => setVisible(true), 100);
    return () => clearTimeout(timer);
  }, [isActive]);
  return isVisible ? <div style={progressStyle} role="progressbar" aria-label="Loading page" /> : null;
}

const reconnectMs = 3_000;

/** Shows that the service is unreachable, and polls until it responds. */
function ConnectionAlert() {
  const client = useQueryClient();
  const isUnreachable = useFlag(queryKeys.unreachable);
  useEffect(() => {
    if (!isUnreachable) return;
    const timer = setInterval(() => void client.refetchQueries({ queryKey: queryKeys.session }), reconnectMs);
    return () => clearInterval(timer);
  }, [client, isUnreachable]);
  if (!isUnreachable) return null;
  return (
    <Alert color="yellow" icon={<IconWifiOff size={18} />} title="Connection lost" role="alert" className="th-notice">
      <Text>This page may be out of date. Your input is kept. Reconnecting…</Text>
    </Alert>
  );
}

/** Shows that the session has ended, and leaves the page with its input unchanged. */
function SessionAlert() {
  const client = useQueryClient();
  const hasEnded = useFlag(queryKeys.sessionEnded);
  if (!hasEnded) return null;
  const resume = () => refetchQueries(client);
  return (
    <Alert
      color="yellow"
      icon={<IconLock size={18} />}
      title="Your session has ended"
      role="alert"
      className="th-notice"
    >
      <Text>Your input is kept. Sign in in a new tab, then return here and try again.</Text>
      <Group mt="xs" gap="sm">
        <Button component="a" href={`${basePath}/login?return_to=${basePath}/servers`} target="_blank" rel="noopener">
          Sign in in a new tab
        </Button>
        <Button variant="default" onClick={resume}>
          I have signed in
        </Button>
      </Group>
    </Alert>
  );
}
