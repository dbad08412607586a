package gate

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"
)

// subnet takes the /64 of an IPv6 address for one source.
func subnet(a netip.Addr) netip.Addr {
	if a.Is6() {
		return netip.PrefixFrom(a, 64).Masked().Addr()
	}
	return a
}

func of(most, mostPerSource int) *Gate {
	return New(nil, Rules{Most: most, MostPerSource: mostPerSource, SourceOf: subnet}, nil)
}

// TestShares lets sources come and go at random and checks that the bounds
// hold. After all have left, the gate must count none.
func TestShares(t *testing.T) {
	t.Parallel()
	const most, mostPerSource = 60, 20
	type faults struct{ most, source, newcomer int }
	play := func(g *Gate, rnd *rand.Rand) (f faults) {
		open := map[string]int{}
		all := 0
		for range 5000 {
			peer := &net.TCPAddr{IP: net.IPv4(203, 0, 113, byte(rnd.IntN(9))), Port: 1}
			if n := open[peer.String()]; n > 0 && rnd.IntN(3) == 0 {
				g.leave(peer.AddrPort().Addr().Unmap())
				open[peer.String()]--
				all--
				continue
			}
			if _, ok := g.admit(peer); ok {
				open[peer.String()]++
				all++
			} else if all < most && open[peer.String()] == 0 {
				f.newcomer++
			}
			f.most += max(0, all-most)
			f.source += max(0, open[peer.String()]-mostPerSource)
		}
		for peer, n := range open {
			for range n {
				g.leave(netip.MustParseAddrPort(peer).Addr())
			}
		}
		return f
	}
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		g := of(most, mostPerSource)
		if f := play(g, rnd); f != (faults{}) {
			t.Errorf("beyond the bounds, or against a newcomer: %+v", f)
		}
		if g.open != 0 || len(g.bySource) != 0 {
			t.Errorf("%d open, %v", g.open, g.bySource)
		}
		if f := play(of(1000, 1000), rnd); f.most == 0 || f.source == 0 {
			t.Errorf("control: no bounds, and nothing is seen: %+v", f)
		}
	}
	g := of(100, 2)
	for i, test := range []struct {
		peer string
		want bool
	}{
		{"[2001:db8::1]:1", true}, {"[2001:db8::2]:1", true}, {"[2001:db8::3]:1", false}, {"[2001:db8:0:1::1]:1", true},
		{"203.0.113.1:1", true}, {"[::ffff:203.0.113.1]:1", true}, {"203.0.113.1:2", false}, {"203.0.113.2:1", true},
	} {
		if _, ok := g.admit(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(test.peer))); ok != test.want {
			t.Errorf("%d: %s was let in: %t", i, test.peer, ok)
		}
	}
}
