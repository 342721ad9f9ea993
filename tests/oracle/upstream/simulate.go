// Placements in queue order, each assumed before the next, and how fast upstream makes them.

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

type simResult struct {
	Placements map[string]*string        `json:"placements"`
	Order      []string                  `json:"order"`
	Failed     map[string]map[string]int `json:"failed,omitempty"` // reason -> nodes, as in FailedScheduling events
	Ignored    map[string]string         `json:"ignored,omitempty"`
	Totals     map[string]int64          `json:"totals,omitempty"`
	state      fwk.CycleState            `json:"-"`
}

var errNoFit = errors.New("no node fits")

// scheduleOne is schedulePod: all nodes filtered (with -sample, until enough fit), all feasible ones scored,
// the highest total wins, ties go to the lexicographically smallest name.
func (w *world) scheduleOne(pod *v1.Pod, why map[string]int) (string, int64, fwk.CycleState, error) {
	state := framework.NewCycleState()
	all := w.nodeList()
	if len(all) == 0 {
		return "", 0, nil, scheduler.ErrNoNodesAvailable
	}
	preRes, st, unsched := w.fw.RunPreFilterPlugins(w.ctx, state, pod)
	if !st.IsSuccess() {
		for _, r := range reasons(st) {
			why[r] += len(all)
		}
		if st.IsRejected() {
			return "", 0, nil, errNoFit
		}
		return "", 0, nil, st.AsError()
	}
	if nn := pod.Status.NominatedNodeName; nn != "" {
		if ni, err := w.snap.GetNodeInPlacement(nn); err == nil {
			if w.fw.RunFilterPluginsWithNominatedPods(w.ctx, state, pod, ni).IsSuccess() {
				return nn, -1, state, nil
			}
		}
	}
	nodes := all
	if !preRes.AllNodes() {
		nodes = nil
		for name := range preRes.NodeNames {
			if ni, err := w.snap.GetNodeInPlacement(name); err == nil {
				nodes = append(nodes, ni)
			}
		}
	}
	feasible, err := w.filter(state, pod, nodes, why)
	if err != nil {
		return "", 0, nil, err
	}
	if n := len(all) - len(nodes); n > 0 {
		why[fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(unsched))] += n
	}
	switch len(feasible) {
	case 0:
		return "", 0, nil, errNoFit
	case 1:
		return feasible[0].Node().Name, -1, state, nil
	}
	scored, err := w.score(state, pod, feasible)
	if err != nil {
		return "", 0, nil, err
	}
	best := scored[0]
	for _, s := range scored[1:] {
		if s.TotalScore > best.TotalScore || s.TotalScore == best.TotalScore && s.Name < best.Name {
			best = s
		}
	}
	return best.Name, best.TotalScore, state, nil
}

// filter is findNodesThatPassFilters: the feasible ones of the nodes. With -sample it stops once it has found as many
// as kube-scheduler looks for by default, and the next pod's search begins where this one ended.
func (w *world) filter(state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo, why map[string]int) ([]fwk.NodeInfo, error) {
	enough := int32(len(nodes))
	if *flagSample {
		enough = nodesToFind(enough)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	at := func(i int) fwk.NodeInfo { return nodes[(w.next+i)%len(nodes)] }
	status, fits := make([]*fwk.Status, len(nodes)), make([]bool, len(nodes))
	var found atomic.Int32
	w.fw.Parallelizer().Until(ctx, len(nodes), func(i int) {
		st := w.fw.RunFilterPluginsWithNominatedPods(ctx, state, pod, at(i))
		switch {
		case !st.IsSuccess():
			status[i] = st
		case found.Add(1) <= enough:
			fits[i] = true
		default:
			cancel()
		}
	}, metrics.Filter)
	var feasible []fwk.NodeInfo
	refused := 0
	for i, st := range status {
		switch {
		case fits[i]:
			feasible = append(feasible, at(i))
		case st == nil: // not looked at
		case st.Code() == fwk.Error:
			return nil, st.AsError()
		default:
			refused++
			for _, r := range st.Reasons() {
				why[r]++
			}
		}
	}
	if *flagSample {
		w.next = (w.next + len(feasible) + refused) % len(w.nodeList())
	}
	return feasible, nil
}

// nodesToFind is numFeasibleNodesToFind where percentageOfNodesToScore is not set.
func nodesToFind(all int32) int32 {
	const least, leastPercentage = 100, 5
	return min(all, max(least, all*max(leastPercentage, 50-all/125)/100))
}

func (w *world) queueOrder() []*v1.Pod {
	pods := append([]*v1.Pod{}, w.doc.pending...)
	sort.SliceStable(pods, func(i, j int) bool {
		a, b := pods[i], pods[j]
		if prio(a) != prio(b) {
			return prio(a) > prio(b)
		}
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	})
	return pods
}

func (w *world) simulate() (*simResult, error) {
	res := &simResult{Placements: map[string]*string{}, Failed: map[string]map[string]int{}, Ignored: w.doc.ignored, Totals: map[string]int64{}}
	for _, pod := range w.queueOrder() {
		key := podKey(pod)
		if w.doc.ignored[key] != "" {
			continue
		}
		res.Order = append(res.Order, key)
		if g := w.preEnqueue(pod); g != nil {
			res.Placements[key] = nil
			res.Failed[key] = map[string]int{strings.Join(g.Reasons, "; "): 0}
			continue
		}
		why := map[string]int{}
		host, total, state, err := w.scheduleOne(pod, why)
		if err != nil {
			if err != errNoFit {
				why["error: "+err.Error()] = 0
			}
			res.Placements[key] = nil
			res.Failed[key] = why
			continue
		}
		// assume + reserve, as in the scheduling cycle
		assumed := pod.DeepCopy()
		assumed.Spec.NodeName = host
		if err := w.cache.AssumePod(w.logger, assumed); err != nil {
			return nil, err
		}
		w.queue.Delete(pod) // out of the queue and out of the nominator
		if st := w.fw.RunReservePluginsReserve(w.ctx, state, assumed, host); !st.IsSuccess() {
			w.fw.RunReservePluginsUnreserve(w.ctx, state, assumed, host)
			if err := w.cache.ForgetPod(w.logger, assumed); err != nil {
				return nil, err
			}
			res.Placements[key] = nil
			res.Failed[key] = map[string]int{"reserve: " + st.Message(): 1}
		} else {
			res.Placements[key] = &host
			res.Totals[key] = total
		}
		if err := w.cache.UpdateSnapshot(w.logger, w.snap); err != nil {
			return nil, err
		}
	}
	return res, nil
}

type benchResult struct {
	Nodes    int       `json:"nodes"`
	Existing int       `json:"existing"`
	Pending  int       `json:"pending"`
	Placed   int       `json:"placed"`
	SetupS   float64   `json:"setup_s"`
	LoopS    []float64 `json:"loop_s"`
	Best     float64   `json:"best_pods_per_s"`
	Mean     float64   `json:"mean_pods_per_s"`
	Procs    int       `json:"gomaxprocs"`

	Placements map[string]*string `json:"placements"`
}

func bench(doc *document, n int) (*benchResult, error) {
	r := &benchResult{Nodes: len(doc.nodes), Existing: len(doc.bound), Pending: len(doc.pending), Procs: runtime.GOMAXPROCS(0)}
	var sum float64
	tried := 0
	for i := 0; i < n; i++ {
		t0 := time.Now()
		w, err := newWorld(doc)
		if err != nil {
			return nil, err
		}
		r.SetupS = time.Since(t0).Seconds()
		runtime.GC()
		t0 = time.Now()
		res, err := w.simulate()
		el := time.Since(t0).Seconds()
		w.close()
		if err != nil {
			return nil, err
		}
		r.Placed, tried, r.Placements = 0, len(res.Order), res.Placements
		for _, p := range res.Placements {
			if p != nil {
				r.Placed++
			}
		}
		r.LoopS = append(r.LoopS, el)
		sum += el
		if rate := float64(tried) / el; rate > r.Best {
			r.Best = rate
		}
	}
	r.Mean = float64(tried*n) / sum
	return r, nil
}
